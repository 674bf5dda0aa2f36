// What the lobby servers, the runner and the developers of a platform of the tests do, and the proof that a refusal has changed
// nothing. The verbs are members of the platform (platform.ts).
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  type ApiError,
  type BodyOf,
  createGameVersion,
  type ErrorCode,
  type findLobby,
  getGameVersionById,
  type ResponseOf,
  setLobbyReady,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { sql } from 'kysely'
import type { Context } from '../../src/context.ts'
import { newId } from '../../src/ids.ts'
import { failureOf } from './refusal.ts'
import { until } from './until.ts'

export type Seat = ResponseOf<typeof findLobby>
export type GameModes = NonNullable<VersionConfig['matchmaker']>['game_modes']

type Game = { game_id: string; namespace_id: string; version_id: string }
type RunEnd = { exit_code: number | null; exit_reason: string }

/** The members of a platform that the verbs use. */
type OfPlatform = {
  ctx: Context
  client: Client
  as: (token: string) => Client
  lobbyToken: (lobby: { lobby_id: string; namespace_id: string }) => string
}

export type PlatformVerbs = {
  playerIdOf: (seat: Seat) => string
  /** Returns the client of the lobby's server. */
  serverOf: (game: Pick<Game, 'namespace_id'>, lobby_id: string) => Client
  makeReady: (game: Pick<Game, 'namespace_id'>, lobby_id: string) => Promise<ResponseOf<typeof setLobbyReady>>
  /** Waits until so many lobbies wait for their server to call ready: 1 when `count` is missing. Returns their ids, oldest first. */
  startingLobbies: (game: Pick<Game, 'namespace_id'>, count?: number) => Promise<string[]>
  /** Waits until the row of a lobby has the reason of its stop. */
  stopReasonOf: (lobby_id: string) => Promise<string>
  /** Waits until the row of a player has the reason of the removal. */
  removeReasonOf: (player_id: string) => Promise<string>
  /** Writes what a runner writes when the server of a lobby does not respond. */
  stallRun: (lobby_id: string) => Promise<void>
  /** Writes what a runner writes when the process of a lobby has ended: with exit code 1 when `end` is missing. */
  endRun: (lobby_id: string, end?: RunEnd) => Promise<void>
  /** Lets the game mode `nowhere` run in a region only that the platform has no longer. Comes before the first find. */
  closeRegion: (game: Pick<Game, 'version_id'>) => Promise<void>
  /** Creates a version that differs in its game modes. Returns its id. */
  createVersion: (game: Pick<Game, 'game_id' | 'version_id'>, game_modes: GameModes) => Promise<string>
  /** Deploys a version that differs in its game modes. Returns its id. */
  deploy: (game: Game, game_modes: GameModes) => Promise<string>
  /** Deploys a version that today's checks would refuse, as one of an earlier release: with these game modes besides. */
  deployUnchecked: (game: Game, game_modes: object) => Promise<void>
  putVersion: (game: Pick<Game, 'game_id' | 'namespace_id'>, version_id: string) => Promise<void>
  setLimits: (
    game: Pick<Game, 'game_id' | 'namespace_id'>,
    body: BodyOf<typeof updateGameNamespaceMatchmakerConfig>,
  ) => Promise<void>
  /** Waits for the call and its notification: the listener notifies the matchmaker before this test. */
  notified: (call: Promise<unknown>) => Promise<void>
  /** Returns the ends of all journals. What the matchmaker holds true is there: where none has grown, nothing has changed. */
  journalEnds: () => Promise<string>
  /** Asserts that the call is refused with this code, and that it has changed nothing. Returns the refusal. */
  refuses: (code: ErrorCode, call: () => Promise<unknown>) => Promise<ApiError>
}

export const PLATFORM_VERBS: PlatformVerbs & ThisType<PlatformVerbs & OfPlatform> = {
  playerIdOf(seat) {
    const token = this.ctx.keys.verify(seat.player.token, this.ctx.now())
    assert.equal(token.kind, 'player')
    return 'player_id' in token ? token.player_id : ''
  },

  serverOf({ namespace_id }, lobby_id) {
    return this.as(this.lobbyToken({ lobby_id, namespace_id }))
  },

  makeReady(game, lobby_id) {
    return this.serverOf(game, lobby_id).call(setLobbyReady, {})
  },

  startingLobbies({ namespace_id }, count = 1) {
    return until(`${count} starting lobbies`, async () => {
      const rows = await this.ctx.db
        .selectFrom('lobbies')
        .where('namespace_id', '=', namespace_id)
        .where('ready_ts', 'is', null)
        .where('stop_ts', 'is', null)
        .orderBy('create_ts')
        .orderBy('lobby_id')
        .select('lobby_id')
        .execute()
      return rows.length >= count && rows.map((row) => row.lobby_id)
    })
  },

  stopReasonOf(lobby_id) {
    return until('the lobby to be stopped', async () => {
      const lobby = this.ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('stop_reason')
      return (await lobby.executeTakeFirst())?.stop_reason
    })
  },

  removeReasonOf(player_id) {
    return until('the player to be removed', async () => {
      const player = this.ctx.db.selectFrom('players').where('player_id', '=', player_id).select('remove_reason')
      return (await player.executeTakeFirst())?.remove_reason
    })
  },

  async stallRun(lobby_id) {
    const { db, listener } = this.ctx
    const row = { lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}' }
    await db
      .insertInto('lobby_runs')
      .values({ ...row, start_ts: new Date(), stall_ts: new Date() })
      .execute()
    await listener.notify('lobby_runs', lobby_id)
    await until('the lobby to stall', async () => {
      const lobby = db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('is_stalled')
      return (await lobby.executeTakeFirstOrThrow()).is_stalled
    })
  },

  async endRun(lobby_id, end = { exit_code: 1, exit_reason: 'exit' }) {
    const { db, listener } = this.ctx
    const row = { lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}', ...end }
    await db
      .insertInto('lobby_runs')
      .values({ ...row, exit_ts: new Date() })
      .execute()
    await listener.notify('lobby_runs', lobby_id)
  },

  async closeRegion({ version_id }) {
    await sql`
      update versions set config = jsonb_set(config::jsonb, '{matchmaker,game_modes,nowhere,regions}', '{"mars": {}}')
      where version_id = ${version_id}`.execute(this.ctx.db)
  },

  async createVersion({ game_id, version_id }, game_modes) {
    const { version } = await this.client.call(getGameVersionById, { params: { game_id, version_id } })
    const config = { matchmaker: { ...version.config.matchmaker!, game_modes } }
    const body = { display_name: randomUUID(), config }
    return (await this.client.call(createGameVersion, { params: { game_id }, body })).version_id
  },

  async deploy(game, game_modes) {
    const version_id = await this.createVersion(game, game_modes)
    await this.putVersion(game, version_id)
    return version_id
  },

  async deployUnchecked({ game_id, namespace_id, version_id: former_id }, game_modes) {
    const version_id = newId(this.ctx.now())
    await this.ctx.pool.query(
      `insert into versions (version_id, game_id, display_name, config)
        select $1, game_id, 'earlier', jsonb_set(config, '{matchmaker,game_modes}', config #> '{matchmaker,game_modes}' || $2)
        from versions where version_id = $3`,
      [version_id, JSON.stringify(game_modes), former_id],
    )
    await this.client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  },

  async putVersion({ game_id, namespace_id }, version_id) {
    const params = { game_id, namespace_id }
    await this.notified(this.client.call(updateGameNamespaceVersion, { params, body: { version_id } }))
  },

  async setLimits({ game_id, namespace_id }, body) {
    const params = { game_id, namespace_id }
    await this.notified(this.client.call(updateGameNamespaceMatchmakerConfig, { params, body }))
  },

  async notified(call) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unsubscribe = this.ctx.listener.on('namespaces', () => resolve())
    await Promise.all([call, promise])
    unsubscribe()
  },

  async journalEnds() {
    const { rows } = await sql`select shard, max(seq) from journal group by shard order by shard`.execute(this.ctx.db)
    return JSON.stringify(rows)
  },

  async refuses(code, call) {
    const before = await this.journalEnds()
    const error = await failureOf(call())
    assert.equal(error.code, code, error.message)
    assert.equal(await this.journalEnds(), before, `${code} has changed something`)
    return error
  },
}
