import assert from 'node:assert/strict'
import test from 'node:test'
import {
  createGame,
  createGroup,
  getBootstrap,
  getGameById,
  getGames,
  getGroupSummary,
  listGroups,
  validateGame,
  validateGroup,
} from '@musterhost/contract'
import { mainUrl } from '../../src/config/addresses.ts'
import { startPlatform } from '../support/platform.ts'
import { detailsOf, newGame, refused, UNKNOWN_ID, withoutMessages } from './steps.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('bootstrap, groups and games', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client } = platform

  await t.test('bootstrap returns to anyone where things are', async () => {
    const answer = await platform.as('not a token').call(getBootstrap, {})
    assert.deepEqual(Object.keys(answer).sort(), [
      'access',
      'captcha',
      'cluster',
      'domains',
      'login_methods',
      'origins',
    ])
    assert.equal(answer.cluster, 'oss')
    assert.equal(answer.access, 'private')
    assert.deepEqual(answer.domains, { main: 'localhost', cdn: 'cdn.localhost', job: 'localhost' })
    assert.deepEqual(answer.origins, { hub: mainUrl(platform.ctx.config) })
    assert.deepEqual(answer.captcha, {})
    assert.deepEqual(answer.login_methods, { access_token: true, email: true })
  })

  await t.test('a created group is found and listed, newest first', async () => {
    const first = await client.call(createGroup, { body: { display_name: 'First' } })
    const second = await client.call(createGroup, { body: { display_name: '👩‍👩‍👧‍👦 Zweite' } })
    const { group } = await client.call(getGroupSummary, { params: second })
    assert.equal(group.display_name, '👩‍👩‍👧‍👦 Zweite')
    assert.match(group.create_ts, TIME)
    const { groups } = await client.call(listGroups, {})
    const ids = groups.map((item) => item.group_id)
    assert.ok(ids.includes(first.group_id) && ids.includes(second.group_id))
    assert.deepEqual(
      groups.map((item) => item.create_ts),
      groups
        .map((item) => item.create_ts)
        .sort()
        .reverse(),
    )
    await refused('GROUP_NOT_FOUND', client.call(getGroupSummary, { params: { group_id: UNKNOWN_ID } }))
  })

  await t.test('names of groups are counted in characters and must be visible; validate says the same', async () => {
    const cases: [string, string | null][] = [
      ['x'.repeat(24), null],
      ['😀'.repeat(24), null],
      ['x'.repeat(25), 'too_long'],
      ['😀'.repeat(25), 'too_long'],
      ['', 'too_short'],
      ['   ', 'invalid'],
      ['a\nb', 'invalid'],
      ['a\u202eb', 'invalid'],
    ]
    for (const [display_name, reason] of cases) {
      const { errors } = await client.call(validateGroup, { body: { display_name } })
      const expected = reason === null ? [] : [{ path: ['display_name'], reason }]
      assert.deepEqual(withoutMessages(errors), expected, JSON.stringify(display_name))
      const call = client.call(createGroup, { body: { display_name } })
      if (reason === null) await call
      else assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', call)), expected, JSON.stringify(display_name))
    }
  })

  await t.test('malformed bodies are refused with the path and create nothing', async () => {
    const before = await client.call(listGroups, {})
    const bodies: [unknown, string[], string][] = [
      [{}, ['display_name'], 'required'],
      [{ display_name: 5 }, ['display_name'], 'wrong_type'],
      [{ display_name: null }, ['display_name'], 'wrong_type'],
      [{ display_name: 'x', extra: 1 }, ['extra'], 'unknown'],
      [{ display_name: 'a\0b' }, ['display_name'], 'invalid'],
      [{ display_name: 'a\ud800' }, ['display_name'], 'invalid'],
      [[], [], 'wrong_type'],
    ]
    for (const [body, path, reason] of bodies) {
      const error = await refused('VALIDATION_ERROR', client.call(createGroup, { body: body as never }))
      assert.deepEqual(detailsOf(error), [{ path, reason }], JSON.stringify(body))
      assert.equal(error.status, 400)
    }
    assert.deepEqual(await client.call(listGroups, {}), before)
  })

  await t.test('a new game has prod and staging on an empty version', async () => {
    const { group_id, game_id } = await newGame(platform)
    const { game } = await client.call(getGameById, { params: { game_id } })
    assert.equal(game.developer_group_id, group_id)
    assert.equal(game.total_player_count, 0)
    assert.match(game.create_ts, TIME)
    assert.deepEqual(
      game.namespaces.map(({ name_id, display_name }) => [name_id, display_name]),
      [
        ['prod', 'Production'],
        ['staging', 'Staging'],
      ],
    )
    assert.equal(game.versions.length, 1)
    for (const namespace of game.namespaces) assert.equal(namespace.version_id, game.versions[0]!.version_id)
    assert.deepEqual(
      game.available_regions.map(({ region_name_id, universal_region }) => [region_name_id, universal_region]),
      [['local', 'local']],
    )
  })

  await t.test('a game is made for a group that exists, under a name id that no game has', async () => {
    const { group_id } = await client.call(createGroup, { body: { display_name: 'G' } })
    const create = (body: object) =>
      client.call(createGame, { body: { display_name: 'A', developer_group_id: group_id, ...body } })
    await refused('GROUP_NOT_FOUND', create({ developer_group_id: UNKNOWN_ID }))
    const malformed = await refused('VALIDATION_ERROR', create({ developer_group_id: UNKNOWN_ID.toUpperCase() }))
    assert.deepEqual(detailsOf(malformed), [{ path: ['developer_group_id'], reason: 'invalid' }])

    await create({ name_id: 'taken' })
    const error = await refused('NAME_TAKEN', create({ name_id: 'taken' }))
    assert.equal(error.status, 409)
    assert.deepEqual(detailsOf(error), [{ path: ['name_id'], reason: 'not_unique' }])
    const { errors } = await client.call(validateGame, { body: { display_name: 'A', name_id: 'taken' } })
    assert.deepEqual(withoutMessages(errors), [{ path: ['name_id'], reason: 'not_unique' }])

    for (const name_id of ['Taken', 'a--b', '-a', 'a-', 'a_b', 'a'.repeat(17), '', 'ä']) {
      assert.deepEqual(detailsOf(await refused('VALIDATION_ERROR', create({ name_id })))[0]?.path, ['name_id'], name_id)
      const answer = await client.call(validateGame, { body: { display_name: 'A', name_id } })
      assert.deepEqual(
        answer.errors.map((item) => item.path),
        [['name_id']],
        name_id,
      )
    }
    assert.deepEqual(await client.call(validateGame, { body: { display_name: 'A', name_id: 'free-name' } }), {
      errors: [],
    })
  })

  await t.test('of many who want one name id at once, one gets it', async () => {
    const { group_id } = await client.call(createGroup, { body: { display_name: 'G' } })
    const body = { display_name: 'A', developer_group_id: group_id, name_id: 'raced' }
    const outcomes = await Promise.allSettled(Array.from({ length: 16 }, () => client.call(createGame, { body })))
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') await refused('NAME_TAKEN', Promise.reject(outcome.reason))
    }
  })

  await t.test('games without a name id get one from the display name, each its own', async () => {
    const { group_id } = await client.call(createGroup, { body: { display_name: 'G' } })
    const name_ids: string[] = []
    for (let count = 0; count < 3; count++) {
      const body = { display_name: 'Puddle Räcers', developer_group_id: group_id }
      const { game_id } = await client.call(createGame, { body })
      const { game } = await client.call(getGameById, { params: { game_id } })
      name_ids.push(game.name_id)
    }
    assert.equal(name_ids[0], 'puddle-racers')
    assert.equal(new Set(name_ids).size, 3)
    for (const name_id of name_ids) assert.match(name_id, /^(?=.{1,16}$)[a-z0-9]+(-[a-z0-9]+)*$/)
  })

  await t.test('a cloud token lists its own game and that game’s group, nothing else', async () => {
    const own = await newGame(platform)
    await newGame(platform)
    const answer = await own.cloud.call(getGames, {})
    assert.deepEqual(
      answer.games.map(({ game_id, developer }) => [game_id, developer.group_id, developer.display_name]),
      [[own.game_id, own.group_id, 'Developers']],
    )
    assert.deepEqual(
      answer.groups.map((group) => group.group_id),
      [own.group_id],
    )
    const all = await client.call(getGames, {})
    assert.ok(all.games.length >= 2)
  })

  await t.test('unknown and malformed ids get different errors', async () => {
    await refused('GAME_NOT_FOUND', client.call(getGameById, { params: { game_id: UNKNOWN_ID } }))
    for (const game_id of ['x', UNKNOWN_ID.toUpperCase(), `${UNKNOWN_ID}0`, '../games', "' or 1=1"]) {
      const error = await refused('VALIDATION_ERROR', client.call(getGameById, { params: { game_id } }))
      assert.equal(detailsOf(error)[0]?.path.at(-1), 'game_id', game_id)
    }
  })
})
