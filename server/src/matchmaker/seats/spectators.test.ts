import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError, gameModesOf } from '@musterhost/contract'
import { readRegions, thisMachine } from '../../config/regions.ts'
import { planOf } from './lobby-plan.ts'
import { isForSpectator, requireSpectators } from './spectators.ts'

const MODES = gameModesOf({ matchmaker: { game_modes: { watched: { max_spectators: 3 }, alone: {} } } })
const [WATCHED, ALONE] = [MODES.get('watched')!, MODES.get('alone')!]

function refusedBy(request: Parameters<typeof isForSpectator>[0]): string[] {
  try {
    isForSpectator(request)
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 'VALIDATION_ERROR')
    return (error.metadata.errors as { path: string[] }[]).map(({ path }) => path.join('.'))
  }
  return []
}

test('a request of a spectator with a member for players only is refused, and names it', () => {
  const for_players = { party: true, attributes: { skill: 1 }, member_attributes: { a: { skill: 1 } } }
  assert.deepEqual(refusedBy({ role: 'spectator', ...for_players }), ['party', 'attributes', 'member_attributes'])
  assert.deepEqual(refusedBy({ role: 'player', ...for_players }), [])
  assert.equal(isForSpectator({ role: 'spectator', party: false }), true)
  assert.equal(isForSpectator({}), false)
})

test('a spectator is refused when no game mode of the request has seats for spectators', () => {
  assert.throws(() => requireSpectators([ALONE]), { code: 'MATCHMAKER_SPECTATORS_DISABLED' })
  requireSpectators([ALONE, WATCHED])
})

test('the plan of a lobby names spectators only where the game mode has seats for them', () => {
  const [region] = readRegions(null, 'spread', thisMachine(), []).regions
  const plan = (mode: typeof ALONE) => planOf({ version_id: 'v' }, mode, region!, {}, null)
  assert.equal('max_spectators' in plan(ALONE), false)
  assert.equal(plan(WATCHED).max_spectators, 3)
})
