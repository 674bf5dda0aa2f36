// Roll-outs: a part of the clients gets another version, of the site and of lobbies, and a limit that is passed ends that.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import {
  type BodyOf,
  completeUpload,
  createCloudToken,
  createGameCdnSite,
  createGameVersion,
  deleteGameVersion,
  endRollout,
  findLobby,
  getGameNamespaceVersionHistoryList,
  getGameVersionById,
  getRollout,
  joinLobby,
  listGroupAuditEvents,
  listLobbies,
  setRollout,
  type VersionConfig,
} from '@musterhost/contract'
import { isOfRollout } from '../../src/wire/rollout-share.ts'
import { arrives } from '../cloud/steps.ts'
import { get } from '../edge/get.ts'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

const MODE = { max_players: 1, idle_grace_ms: LONG_MS }
const PERCENT = 50
const PAGE = 'index.html'

type Backend = (client: string, body?: Partial<BodyOf<typeof findLobby>>) => Promise<string | undefined>

test('roll-outs', async (t: TestContext) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()

  await t.test('a part of the clients gets lobbies of the version, and a named version is always had', async () => {
    const { game, next, find, begin, end } = await startGame(platform)
    const { version_id: deployed } = game
    const rollout_id = await begin({ percent: PERCENT })
    const clients = Array.from({ length: 20 }, (_, at) => `203.0.113.${at}`)
    const of_rollout = clients.filter((client_key) => isOfRollout({ rollout_id, percent: PERCENT }, client_key))
    assert.ok(of_rollout.length > 0 && of_rollout.length < clients.length)
    for (const client of clients) {
      const expected = of_rollout.includes(client) ? next : deployed
      assert.equal(await find(client), expected, client)
    }
    const [client] = clients as [string]
    assert.equal(await find(client, { version_id: next }), next)
    assert.equal(await find(client, { version_id: deployed }), deployed)
    await until('the counts of the roll-out', async () => {
      const { figures } = (await lastRollout(platform, game))!
      const counts = [figures.rollout, figures.deployed].map((one) => [one.lobby_count, one.find_count])
      const [rolled, stayed] = [of_rollout.length + 1, clients.length - of_rollout.length + 1]
      return (
        JSON.stringify(counts) ===
        JSON.stringify([
          [rolled, rolled],
          [stayed, stayed],
        ])
      )
    })
    await begin({ percent: 99 })
    assert.ok(of_rollout.length > 0)
    for (const one of of_rollout) assert.equal(await find(one), next, 'a larger part has the clients of a smaller one')
    await end('rolled_back')
    for (const one of of_rollout) assert.equal(await find(one), deployed)
    await platform.refuses('MATCHMAKER_VERSION_REPLACED', () => find(client, { version_id: next }))
  })

  await t.test(
    'a join does not lead to another version, and the list has the lobbies of the version of the client',
    async () => {
      const { game, next, begin } = await startGame(platform)
      const rollout_id = await begin({ percent: 99 })
      const is_rolled = isOfRollout({ rollout_id, percent: 99 }, '127.0.0.1')
      const [mine, others] = is_rolled ? [next, game.version_id] : [game.version_id, next]
      const found = await game.find()
      assert.equal(found.lobby.version_id, mine)
      const body = { lobby_id: found.lobby.lobby_id, version_id: others }
      const refused = await platform.refuses('MATCHMAKER_VERSION_REPLACED', () => game.player.call(joinLobby, { body }))
      // With the version of the page itself, the SDK does not load the page again.
      assert.deepEqual(refused.metadata, { version_id: others, lobby_version_id: mine })
      const other = await game.find({ version_id: others })
      const { lobbies } = await game.player.call(listLobbies, {})
      assert.deepEqual(
        lobbies.map(({ lobby_id }) => lobby_id),
        [found.lobby.lobby_id],
        other.lobby.lobby_id,
      )
    },
  )

  await t.test('idle lobbies of both versions stay, and of the one that was rolled back none does', async () => {
    const idle = { idle_lobbies: { min: 1, max: 1 } }
    const { game, next, begin, end } = await startGame(platform, idle)
    const versions = async (): Promise<string[]> => {
      const rows = platform.ctx.db
        .selectFrom('lobbies')
        .select('version_id')
        .where('namespace_id', '=', game.namespace_id)
        .where('stop_ts', 'is', null)
        .where('ready_ts', 'is not', null)
      return (await rows.execute()).map(({ version_id }) => version_id).sort()
    }
    const both = [game.version_id, next].sort()
    await begin({ percent: 10 })
    await until('idle lobbies of both versions', async () => JSON.stringify(await versions()) === JSON.stringify(both))
    await end('rolled_back')
    await until(
      "only the deployed version's idle lobby",
      async () => JSON.stringify(await versions()) === JSON.stringify([game.version_id]),
    )
  })

  await t.test(
    'the limit for failed lobbies rolls back at once, and the audit log says that the platform did',
    async () => {
      const { game, next, find, begin } = await startGame(platform)
      const rollout_id = await begin({ percent: PERCENT, failed_lobbies_percent_max: 40 })
      const fail = async (version_id: string, at: number): Promise<void> => {
        const { lobby } = await game.find({ version_id })
        await platform.endRun(lobby.lobby_id)
        assert.equal((await lastRollout(platform, game))!.outcome, undefined, `${at}`)
      }
      // Lobbies of the deployed version that fail are not those of the roll-out.
      for (let at = 0; at < 4; at++) await fail(game.version_id, at)
      for (let at = 0; at < 2; at++) await fail(next, at)
      const { lobby } = await game.find({ version_id: next })
      await platform.endRun(lobby.lobby_id)
      await until(
        'the roll-out to be rolled back',
        async () => (await lastRollout(platform, game))!.outcome === 'rolled_back',
      )
      const { reason, figures } = (await lastRollout(platform, game))!
      assert.equal(reason, '3 of 3 lobbies failed; the limit is 40 %.')
      assert.deepEqual([figures.rollout.failed_lobby_count, figures.deployed.failed_lobby_count], [3, 4])
      const query = { operation: endRollout.id }
      const { events } = await platform.client.call(listGroupAuditEvents, {
        params: { group_id: game.group_id },
        query,
      })
      const [event] = events.filter((one) => one.changes.some(({ before }) => before?.includes(rollout_id)))
      assert.equal(event?.actor.kind, 'platform')
      assert.equal(await find('203.0.113.1'), game.version_id)
    },
  )

  await t.test('a promoted version is deployed, and a deploy ends the roll-out', async () => {
    const { game, next, begin, end } = await startGame(platform)
    await begin({ percent: 1 })
    await platform.refuses('IN_USE', () =>
      platform.client.call(deleteGameVersion, { params: { game_id: game.game_id, version_id: next } }),
    )
    assert.equal((await end('promoted')).version_id, next)
    const params = { game_id: game.game_id, namespace_id: game.namespace_id }
    const history = () => platform.client.call(getGameNamespaceVersionHistoryList, { params, query: {} })
    const [newest] = (await history()).versions
    assert.deepEqual([newest!.version_id, newest!.message], [next, 'It works'])
    assert.equal((await game.find()).lobby.version_id, next)
    await platform.refuses('ROLLOUT_NOT_UNDER_WAY', () => end('promoted'))
    await platform.refuses('ROLLOUT_VERSION_DEPLOYED', () => begin({ percent: 1 }))

    const rollout = (version_id: string) =>
      platform.client.call(setRollout, { params, body: { version_id, percent: 10 } })
    await rollout(game.version_id)
    await platform.putVersion(game, next)
    assert.equal((await lastRollout(platform, game))!.outcome, 'replaced')
    await rollout(game.version_id)
    await platform.putVersion(game, game.version_id)
    assert.equal((await lastRollout(platform, game))!.outcome, 'promoted')
  })

  await t.test('the site is of the same version as the lobbies, and stays out of shared caches meanwhile', async () => {
    const site = {
      old: { [PAGE]: 'old page', 'main.8f3a01bc.js': 'old' },
      new: { [PAGE]: 'new page', 'main.9a4b12cd.js': 'new' },
    }
    const game = await platform.game({ matchmaker: { game_modes: { default: MODE } } })
    const [old_version, new_version] = [
      await withSite(platform, game, site.old),
      await withSite(platform, game, site.new),
    ]
    await platform.putVersion(game, old_version)
    const params = { game_id: game.game_id, namespace_id: game.namespace_id }
    const port = Number(new URL(platform.edge_url).port)
    const page = (localAddress: string, path = '/') =>
      get({ port }, path, { localAddress, headers: { host: `${game.name_id}.cdn.localhost` } })
    assert.equal((await page('127.0.0.1')).headers['cache-control'], 'no-cache, no-store')
    const body = { version_id: new_version, percent: PERCENT }
    const { rollout_id } = await platform.client.call(setRollout, { params, body })
    const clients = Array.from({ length: 12 }, (_, at) => `127.0.0.${at + 1}`)
    const isRolled = (client_key: string) => isOfRollout({ rollout_id, percent: PERCENT }, client_key)
    assert.equal(new Set(clients.map(isRolled)).size, 2)
    await until(
      'the page of the new version',
      async () => (await page(clients.find(isRolled)!)).body.toString() === 'new page',
    )
    for (const client of clients) {
      const { headers, body: text } = await page(client)
      assert.equal(text.toString(), isRolled(client) ? 'new page' : 'old page')
      assert.equal(headers['cache-control'], 'private, no-cache, no-store')
      const { version_id } = JSON.parse((await page(client, '/.well-known/muster.json')).body.toString())
      assert.equal(version_id, isRolled(client) ? new_version : old_version)
      // A page that changes sides still gets the files that it names.
      assert.equal((await page(client, '/main.8f3a01bc.js')).body.toString(), 'old')
      assert.equal((await page(client, '/main.9a4b12cd.js')).body.toString(), 'new')
    }
    await platform.client.call(endRollout, { params, body: { outcome: 'rolled_back' } })
    await until(
      'the page of the deployed version',
      async () => (await page(clients.find(isRolled)!)).body.toString() === 'old page',
    )
    const former = await page(clients[0]!, '/main.9a4b12cd.js')
    assert.deepEqual([former.body.toString(), former.headers['cache-control']], ['new', 'no-cache'])
  })
})

/** A game with two versions of which the first is deployed. */
async function startGame(platform: Platform, mode: object = {}) {
  const game = await platform.game({ matchmaker: { game_modes: { default: { ...MODE, ...mode } } } })
  const { game_id, namespace_id } = game
  const params = { game_id, namespace_id }
  const { client } = platform
  const next = await createVersion(platform, game, {})
  const { token } = await client.call(createCloudToken, { params: { game_id } })
  const backend = platform.as(token)
  const find: Backend = async (address, body = {}) => {
    const of_backend = { game_modes: ['default'], namespace_id, clients: [{ address }], ...body }
    return (await backend.call(findLobby, { body: of_backend })).lobby.version_id
  }
  return {
    game,
    next,
    find,
    begin: (part: Omit<BodyOf<typeof setRollout>, 'version_id'>) =>
      notified(platform, client.call(setRollout, { params, body: { version_id: next, ...part } })).then(
        ({ rollout_id }) => rollout_id,
      ),
    end: (outcome: BodyOf<typeof endRollout>['outcome']) =>
      notified(platform, client.call(endRollout, { params, body: { outcome, message: 'It works' } })),
  }
}

/** Waits until the matchmaker and the edge have been notified of the call. */
async function notified<T>(platform: Platform, call: Promise<T>): Promise<T> {
  await platform.notified(call)
  return call
}

async function lastRollout(platform: Platform, { game_id, namespace_id }: TestGame) {
  return (await platform.client.call(getRollout, { params: { game_id, namespace_id } })).rollout
}

async function createVersion(platform: Platform, game: TestGame, changes: Partial<VersionConfig>): Promise<string> {
  const { game_id, version_id } = game
  const { version } = await platform.client.call(getGameVersionById, { params: { game_id, version_id } })
  const body = { display_name: randomUUID(), config: { ...version.config, ...changes } }
  return (await platform.client.call(createGameVersion, { params: { game_id }, body })).version_id
}

/** A version of the game with a site of these files. */
async function withSite(platform: Platform, game: TestGame, texts: Record<string, string>): Promise<string> {
  const files = Object.entries(texts).map(([path, text]) => ({ path, content_length: Buffer.byteLength(text) }))
  const params = { game_id: game.game_id }
  const site = await platform.client.call(createGameCdnSite, { params, body: { display_name: 'Site', files } })
  for (const presigned of site.presigned_requests) await arrives(platform, presigned, texts[presigned.path]!)
  await platform.client.call(completeUpload, { params: { upload_id: site.upload_id } })
  return createVersion(platform, game, { cdn: { site_id: site.site_id } })
}
