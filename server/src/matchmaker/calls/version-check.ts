// A check of a version before its deploy: one lobby of the version starts in a namespace that runs another one, and the
// caller waits until its server is ready. Players find lobbies of the deployed version only, so none of them meets it before
// the deploy. A reserved seat, which is the platform's own, keeps the lobby until then. The lobby stops when the seat is
// given back, because its version is not deployed. The seat is given back when the caller hangs up, and expires otherwise.
import { ApiError, type BodyOf, type checkMatchmakerVersion, type ResponseOf } from '@musterhost/contract'
import { newId } from '../../ids.ts'
import type { LobbyPlan, SeatTaken } from '../book/commands.ts'
import * as decide from '../book/decide.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { plansOf } from '../seats/lobby-plan.ts'
import type { Requester } from '../seats/requester.ts'
import { failedStart, startProgress } from '../seats/start-errors.ts'
import type { WaitEnd } from '../shards/seat-waiters.ts'
import { ShardMoved } from '../shards/shard-moved.ts'
import { requireVersion } from './lobby-admin.ts'

/** Lobbies that checks keep in a namespace at a time. */
const CHECKS_MAX = 4
const WAIT_MS_DEFAULT = 50_000
/** The client of a check's seat: an address of documentation (RFC 5737), which no player has. */
const CHECK_CLIENT = '192.0.2.2'

type Check = { game_id: string; namespace_id: string; version_id: string } & BodyOf<typeof checkMatchmakerVersion> &
  Pick<Requester, 'ray_id' | 'isGone' | 'hangUpSignal'>
type Checked = ResponseOf<typeof checkMatchmakerVersion>

/** Throws the errors of the operation. MATCHMAKER_LOBBY_STOPPED: the server ended, or was not ready in time. */
export async function checkVersion(ctx: MatchmakerContext, check: Check): Promise<Checked> {
  const { namespace_id, lobby_id, wait_ms = WAIT_MS_DEFAULT } = check
  const namespace = await ctx.namespaces.get(namespace_id)
  if (namespace.game_id !== check.game_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  ctx.books.requireHere(namespace_id)
  const deadline_ms = ctx.elapsed() + wait_ms
  const seat =
    lobby_id === undefined
      ? await startLobby(ctx, check, await planOf(ctx, check), namespace.lobby_count_max)
      : checkedSeat(ctx, check, lobby_id)
  const end = await waitForServer(ctx, check, seat, deadline_ms)
  if (end === 'gone') throw await failedStart(ctx, namespace_id, seat.lobby_id)
  if (check.isGone()) {
    await ctx.books.commit(namespace_id, (book, { now_ms }) => decide.release(book, seat.player_id, now_ms))
  }
  const { lobby_id: id } = seat
  if (end === 'ready') {
    return { lobby_id: id, is_ready: true, is_started: true, is_listening: true, message: '', log_lines: [] }
  }
  const progress = await startProgress(ctx, namespace_id, id)
  return { lobby_id: id, is_ready: false, ...progress, log_lines: [...progress.log_lines] }
}

/** A game mode of the version, in its first region. */
async function planOf(ctx: MatchmakerContext, check: Check): Promise<LobbyPlan> {
  const { game_id, version_id, ray_id } = check
  await requireVersion(ctx, game_id, version_id)
  const modes = await ctx.namespaces.gameModes(version_id)
  // The database keeps no order of the game modes.
  const { game_mode = modes.has('default') ? 'default' : [...modes.keys()].sort()[0] } = check
  const mode = game_mode === undefined ? undefined : modes.get(game_mode)
  if (mode === undefined) throw new ApiError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode })
  const [plan] = plansOf(ctx.config, version_id, [mode])
  if (plan === undefined) throw new ApiError('MATCHMAKER_AUTO_CREATE_FAILED')
  return { ...plan, ray_id }
}

/** Starts made before do not count: a developer may try as often as the rate limit allows. */
async function startLobby(
  ctx: MatchmakerContext,
  { namespace_id }: Check,
  plan: LobbyPlan,
  lobby_count_max: number,
): Promise<SeatTaken> {
  const request = { plan, client_key: CHECK_CLIENT, client_players_max: CHECKS_MAX, lobby_count_max }
  try {
    return await ctx.books.commit(namespace_id, (book, env) =>
      decide.create(
        book,
        { ...request, seat_key: null, identity_id: null, is_spectator: false, party: null },
        { lobby_id: newId(env.now_ms), player_id: newId(env.now_ms) },
        env,
      ),
    )
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE') throw error
    const message = `The namespace has ${CHECKS_MAX} lobbies of checks already. Try again when one of them has ended.`
    throw new ApiError('QUOTA_REACHED', { limit: CHECKS_MAX, used: CHECKS_MAX }, { message })
  }
}

/** The seat of an earlier call. Throws LOBBY_NOT_FOUND. */
function checkedSeat({ books }: MatchmakerContext, { namespace_id, version_id }: Check, lobby_id: string): SeatTaken {
  const lobby = books.lobby(namespace_id, lobby_id)
  if (lobby === undefined || lobby.version_id !== version_id) throw new ApiError('LOBBY_NOT_FOUND')
  const player = [...lobby.players.values()].find(({ client }) => client === CHECK_CLIENT)
  // Without the seat, the wait ends at once.
  return { lobby_id, player_id: player?.player_id ?? '', is_ready: lobby.ready_ms !== null && lobby.stop_ms === null }
}

/** After a move of its shard to another process the caller asks again, and gets there. */
async function waitForServer(
  ctx: MatchmakerContext,
  { namespace_id, isGone, hangUpSignal }: Check,
  seat: SeatTaken,
  deadline_ms: number,
): Promise<WaitEnd> {
  if (seat.is_ready) return 'ready'
  try {
    return await ctx.books.waitUntilReady(namespace_id, seat, { deadline_ms, isGone, hangUpSignal })
  } catch (error) {
    if (error instanceof ShardMoved) return 'timeout'
    throw error
  }
}
