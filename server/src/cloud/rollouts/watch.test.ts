import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passedLimit } from './watch.ts'

const NONE = { failed_lobbies_percent_max: null, refused_finds_percent_max: null }
const figures = (counts: Partial<Parameters<typeof passedLimit>[1]>) => ({
  version_id: 'a',
  ...{ lobby_count: 0, failed_lobby_count: 0, find_count: 0, refused_find_count: 0 },
  ...counts,
})

test('a limit is passed by more than its part, and by at least a few failures', () => {
  const failed = { ...NONE, failed_lobbies_percent_max: 20 }
  const ofLobbies = (failed_lobby_count: number, lobby_count: number) =>
    passedLimit(failed, figures({ lobby_count, failed_lobby_count }))
  assert.equal(ofLobbies(2, 2), null, 'two failures may be chance')
  assert.equal(ofLobbies(3, 15), null, 'just the part')
  assert.equal(ofLobbies(3, 14), '3 of 14 lobbies failed; the limit is 20 %.')
  const refused = { ...NONE, refused_finds_percent_max: 5 }
  const ofFinds = (refused_find_count: number, find_count: number) =>
    passedLimit(refused, figures({ find_count, refused_find_count }))
  assert.equal(ofFinds(9, 9), null)
  assert.equal(ofFinds(10, 200), null)
  assert.equal(ofFinds(10, 199), '10 of 199 finds were refused; the limit is 5 %.')
})

test('without a limit nothing ends a roll-out', () => {
  const all = { lobby_count: 100, failed_lobby_count: 100, find_count: 100, refused_find_count: 100 }
  assert.equal(passedLimit(NONE, figures(all)), null)
})
