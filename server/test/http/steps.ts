// Steps that the tests of the matchmaker's operations take: players who ask for seats, lobby servers that answer, and
// the proof that a refusal has changed nothing.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  ApiError,
  type BodyOf,
  createGameVersion,
  createLobby,
  type ErrorCode,
  findLobby,
  getGameVersionById,
  joinLobby,
  listLobbies,
  type Operation,
  type ResponseOf,
  setLobbyReady,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { sql } from 'kysely'
import { newId } from '../../src/ids.ts'
import type { Platform, TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

export type Seat = ResponseOf<typeof findLobby>
export type GameModes = NonNullable<VersionConfig['matchmaker']>['game_modes']

export const UNKNOWN_ID = '0190163d-8694-739b-aea5-966c26f8ad91'
/** For lobbies that must not be stopped for want of players during a test of something else. */
export const LONG_MS = 3_600_000

type Headers = Record<string, string>

export const withKey = (key: string = randomUUID()) => ({ headers: { 'idempotency-key': key } })
/** From another machine, for a platform that trusts the header of every client (TRUSTING). */
export const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
export const TRUSTING = { MUSTER_TRUSTED_PROXIES: '127.0.0.0/8' }

/** Game modes that between them can be refused in every documented way. */
export const MODES: GameModes = {
  default: { idle_grace_ms: LONG_MS },
  tagged: { idle_grace_ms: LONG_MS, taggable: true },
  sized: { idle_grace_ms: LONG_MS, allow_dynamic_max_players: true, max_players: 8 },
  nowhere: { actions: { create: { enabled: true, enable_public: true, enable_private: false } } },
  unfindable: { actions: { find: { enabled: false } } },
  unjoinable: { idle_grace_ms: LONG_MS, actions: { join: { enabled: false } } },
  unlisted: { idle_grace_ms: LONG_MS, listable: false },
  custom: {
    idle_grace_ms: LONG_MS,
    taggable: true,
    allow_dynamic_max_players: true,
    max_players: 8,
    actions: { create: { enabled: true, enable_public: true, enable_private: true } },
  },
  secret: { idle_grace_ms: LONG_MS, actions: { create: { enabled: true, enable_private: true } } },
}

/** Deploys a version that today's checks would refuse, as one of an earlier release: with these game modes besides. */
export async function deployUnchecked({ ctx, client }: Platform, game: TestGame, game_modes: object): Promise<void> {
  const { game_id, namespace_id } = game
  const version_id = newId(ctx.now())
  await ctx.pool.query(
    `insert into versions (version_id, game_id, display_name, config)
      select $1, game_id, 'earlier', jsonb_set(config, '{matchmaker,game_modes}', config #> '{matchmaker,game_modes}' || $2)
      from versions where version_id = $3`,
    [version_id, JSON.stringify(game_modes), game.version_id],
  )
  await client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
}

/** `signal` hangs up. */
type How = { headers?: Headers; signal?: AbortSignal }

export function find(game: TestGame, body: Partial<BodyOf<typeof findLobby>> = {}, how: How = {}) {
  return game.player.call(findLobby, { body: { game_modes: ['default'], ...body }, ...how })
}

export function join(game: TestGame, lobby_id: string, how: How = {}) {
  return game.player.call(joinLobby, { body: { lobby_id }, ...how })
}

export function create(game: TestGame, body: Partial<BodyOf<typeof createLobby>> = {}, how: How = {}) {
  return game.player.call(createLobby, { body: { game_mode: 'default', ...body }, ...how })
}

export function idOf(platform: Platform, seat: Seat): string {
  const token = platform.ctx.keys.verify(seat.player.token, platform.ctx.now())
  assert.equal(token.kind, 'player')
  return 'player_id' in token ? token.player_id : ''
}

/** As the lobby's server calls. */
export function serverOf(platform: Platform, game: TestGame, lobby_id: string): Client {
  return platform.as(platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id }))
}

export function ready(platform: Platform, game: TestGame, lobby_id: string) {
  return serverOf(platform, game, lobby_id).call(setLobbyReady, {})
}

/** The public lobbies of a game's namespace, by what counts: their id and how many seats are taken. */
export async function listed(game: TestGame): Promise<{ lobby_id: string; total_player_count: number }[]> {
  const { lobbies } = await game.player.call(listLobbies, {})
  return lobbies.map(({ lobby_id, total_player_count }) => ({ lobby_id, total_player_count }))
}

/** Seats that are taken, over all lobbies that are listed. */
export async function seatsTaken(game: TestGame): Promise<number> {
  return (await listed(game)).reduce((sum, lobby) => sum + lobby.total_player_count, 0)
}

/** Waits until there are so many lobbies that wait for their server to call ready; answers their ids, oldest first. */
export function starting(platform: Platform, game: TestGame, count = 1): Promise<string[]> {
  return until(`${count} starting lobbies`, async () => {
    const rows = await platform.ctx.db
      .selectFrom('lobbies')
      .where('namespace_id', '=', game.namespace_id)
      .where('ready_ts', 'is', null)
      .where('stop_ts', 'is', null)
      .orderBy('create_ts')
      .orderBy('lobby_id')
      .select('lobby_id')
      .execute()
    return rows.length >= count && rows.map((row) => row.lobby_id)
  })
}

/** Waits until the row of a lobby says why it was stopped. */
export function stopReasonOf(platform: Platform, lobby_id: string): Promise<string> {
  return until('the lobby to be stopped', async () => {
    const row = await platform.ctx.db
      .selectFrom('lobbies')
      .where('lobby_id', '=', lobby_id)
      .select('stop_reason')
      .executeTakeFirst()
    return row?.stop_reason
  })
}

/** Waits until the row of a player has the reason of the removal. */
export function removeReasonOf(platform: Platform, player_id: string): Promise<string> {
  return until('the player to be removed', async () => {
    const row = await platform.ctx.db
      .selectFrom('players')
      .where('player_id', '=', player_id)
      .select('remove_reason')
      .executeTakeFirst()
    return row?.remove_reason
  })
}

/** What the runner writes when a lobby's process has ended, and how it says so. */
/** As its runner records that the server of a lobby does not answer. */
export async function stallRun(platform: Platform, lobby_id: string): Promise<void> {
  const { ctx } = platform
  const row = { lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}' }
  await ctx.db
    .insertInto('lobby_runs')
    .values({ ...row, start_ts: new Date(), stall_ts: new Date() })
    .execute()
  await ctx.listener.notify('lobby_runs', lobby_id)
  await until('the lobby to stall', async () => (await rowOf(platform, lobby_id)).is_stalled)
}

function rowOf({ ctx }: Platform, lobby_id: string) {
  return ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).selectAll().executeTakeFirstOrThrow()
}

export async function endRun(
  platform: Platform,
  lobby_id: string,
  end: { exit_code: number | null; exit_reason: string } = { exit_code: 1, exit_reason: 'exit' },
): Promise<void> {
  const { ctx } = platform
  const row = { lobby_id, runner_id: 'test', driver: 'process', handle: '{}', ports: '{}', ...end }
  await ctx.db
    .insertInto('lobby_runs')
    .values({ ...row, exit_ts: new Date() })
    .execute()
  await ctx.listener.notify('lobby_runs', lobby_id)
}

/** Lets the game mode `nowhere` run in a region only that the platform has no longer: to be called before the first find. */
export async function closeRegion(platform: Platform, game: TestGame): Promise<void> {
  await sql`
    update versions set config = jsonb_set(config::jsonb, '{matchmaker,game_modes,nowhere,regions}', '{"mars": {}}')
    where version_id = ${game.version_id}`.execute(platform.ctx.db)
}

/** Creates a version that differs in its game modes. Returns its id. */
export async function createVersion(
  { client }: Pick<Platform, 'client'>,
  game: TestGame,
  game_modes: GameModes,
): Promise<string> {
  const { game_id } = game
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id: game.version_id } })
  const config = { matchmaker: { ...version.config.matchmaker!, game_modes } }
  const { version_id } = await client.call(createGameVersion, {
    params: { game_id },
    body: { display_name: randomUUID(), config },
  })
  return version_id
}

/** Deploys a version that differs in its game modes. */
export async function deploy(platform: Platform, game: TestGame, game_modes: GameModes): Promise<string> {
  const version_id = await createVersion(platform, game, game_modes)
  await putVersion(platform, game, version_id)
  return version_id
}

export async function putVersion(platform: Platform, game: TestGame, version_id: string): Promise<void> {
  const { client } = platform
  const { game_id, namespace_id } = game
  const params = { game_id, namespace_id }
  await told(platform, client.call(updateGameNamespaceVersion, { params, body: { version_id } }))
}

/** After the call the matchmaker knows the namespace's change: the same listener notifies it before this test. */
export async function told(platform: Platform, call: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const unsubscribe = platform.ctx.listener.on('namespaces', () => resolve())
  await Promise.all([call, promise])
  unsubscribe()
}

export async function setLimits(
  platform: Platform,
  game: TestGame,
  body: BodyOf<typeof updateGameNamespaceMatchmakerConfig>,
): Promise<void> {
  const { game_id, namespace_id } = game
  const params = { game_id, namespace_id }
  await told(platform, platform.client.call(updateGameNamespaceMatchmakerConfig, { params, body }))
}

/** Everything that the matchmaker holds true is in its journal: where that has not grown, nothing has changed. */
export async function journal(platform: Platform): Promise<string> {
  const { rows } = await sql`select shard, max(seq) from journal group by shard order by shard`.execute(platform.ctx.db)
  return JSON.stringify(rows)
}

/** Asserts that the call is refused with this code and that it has changed nothing; answers the refusal. */
export async function refused(platform: Platform, code: ErrorCode, call: () => Promise<unknown>): Promise<ApiError> {
  const before = await journal(platform)
  const error = await failureOf(call())
  assert.equal(error.code, code, error.message)
  assert.equal(await journal(platform), before, `${code} has changed something`)
  return error
}

export async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  assert.fail('the call should have been refused')
}

/** How many of the calls were answered, and which refusals the others got. */
export async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const outcome of await Promise.allSettled(calls)) {
    const name = outcome.status === 'fulfilled' ? 'answered' : codeOf(outcome.reason)
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

function codeOf(reason: unknown): string {
  if (reason instanceof ApiError) return reason.code
  throw reason
}

/** What an operation documents and `shown` does not hold: a code that is added there wants a test here. */
export function unshown(operation: Operation, shown: readonly string[]): ErrorCode[] {
  return operation.errors.filter((code) => !shown.includes(code) && !SHOWN_ELSEWHERE.has(code))
}

/**
 * cloud/tiers.test.ts has regions that are full, backend.test.ts namespaces that are not the caller's,
 * matchmaker/captcha*.test.ts captchas, matchmaker/ports.test.ts ports that are all taken,
 * matchmaker/verification*.test.ts games that verify, hands.test.ts versions that drain,
 * identity/guests.test.ts game modes that ask for an identity,
 * matchmaker/parties.test.ts parties.
 */
const SHOWN_ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  'PARTY_NOT_FOUND',
  'PARTY_LEADER_REQUIRED',
  'MATCHMAKER_PARTY_TOO_LARGE',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'MATCHMAKER_VERSION_DRAINING',
  'MATCHMAKER_IDENTITY_REQUIRED',
  'MATCHMAKER_REGISTRATION_REQUIRED',
  'MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED',
  'NAMESPACE_NOT_FOUND',
  'CAPTCHA_CAPTCHA_REQUIRED',
  'CAPTCHA_CAPTCHA_FAILED',
  'CAPTCHA_CAPTCHA_INVALID',
  'CAPTCHA_PROVIDER_FAILED',
  'MATCHMAKER_VERIFICATION_FAILED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
])

export const tooManyTags = (): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`tag${index}`, 'x']))
