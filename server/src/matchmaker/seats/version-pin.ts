// The version that a request for a seat names, because its page was built for it. The deployed version changes nothing. After
// a deploy, a find for an earlier version gets a seat in an open lobby of that version, where the deployed version allows
// that. All other requests are refused with the version that is deployed, so that the page can reload, before a captcha or a
// verification. A repeated request keeps the seat that it got before the deploy.
//
// While a roll-out is under way, the namespace has two versions that are deployed, each for a part of the clients. A request
// that names one of them gets it; one without a version gets that of its client.
//
// A new page may be here before the notification of its deploy. Before a refusal the deployed version is therefore read.
import { ApiError, type SeatAction } from '@musterhost/contract'
import { isOfRollout } from '../../wire/rollout-share.ts'
import type { RequestedSeat } from '../book/commands.ts'
import { hasOutdatedSeat, type OutdatedFind } from '../book/decide.ts'
import type { NamespaceRecord } from '../watch/namespaces.ts'
import type { MatchmakerContext } from './context.ts'
import { type Requester, seatKeyOf } from './requester.ts'

/** The record of a namespace with the version and the game modes of the request. */
export type PinnedRecord = NamespaceRecord & Pick<RequestedSeat, 'replaced_by'>
type Pinned = { version_id?: string; party?: boolean; role?: 'player' | 'spectator' }

/** Throws NAMESPACE_NOT_FOUND, or MATCHMAKER_VERSION_REPLACED. */
export function pinnedRecord(
  ctx: MatchmakerContext,
  requester: Requester,
  action: SeatAction,
  { version_id, party, role }: Pinned,
): PinnedRecord | Promise<PinnedRecord> {
  const record = ctx.namespaces.get(requester.namespace_id)
  if (version_id === undefined) {
    const choose = (known: NamespaceRecord) =>
      counted(known, recordOfClient(known, requester.client_key), requester, action)
    return record instanceof Promise ? record.then(choose) : choose(record)
  }
  return recordOfVersion(ctx, requester, action, version_id, {
    record,
    seat_key: seatKeyOf(requester, action, party === true),
    is_spectator: role === 'spectator',
  })
}

/** The record that a client gets which names no version. */
export function recordOfClient(record: NamespaceRecord, client_key: string): NamespaceRecord {
  const { rollout } = record
  return rollout !== null && isOfRollout(rollout, client_key) ? rollout.record : record
}

/** The record with this version, if it is deployed or rolled out. */
export function recordWith(record: NamespaceRecord, version_id: string): NamespaceRecord | null {
  if (record.version_id === version_id) return record
  return record.rollout?.record.version_id === version_id ? record.rollout.record : null
}

/** Notes for which version of a roll-out a find is. */
function counted(
  { rollout }: NamespaceRecord,
  chosen: NamespaceRecord,
  requester: Requester,
  action: SeatAction,
): NamespaceRecord {
  if (rollout !== null && action === 'find') {
    requester.rollout = { rollout_id: rollout.rollout_id, version_id: chosen.version_id }
  }
  return chosen
}

async function recordOfVersion(
  ctx: MatchmakerContext,
  requester: Requester,
  action: SeatAction,
  version_id: string,
  request: {
    record: NamespaceRecord | Promise<NamespaceRecord>
    seat_key: string | null
    is_spectator: boolean
  },
): Promise<PinnedRecord> {
  const { namespace_id, client_key } = requester
  const record = await request.record
  const known = recordWith(record, version_id)
  if (known !== null) return counted(record, known, requester, action)
  const current = await ctx.namespaces.current(namespace_id)
  const fresh = recordWith(current, version_id)
  if (fresh !== null) return counted(current, fresh, requester, action)
  // The version that the page gets when it reloads.
  const next = recordOfClient(current, client_key)
  const book = ctx.books.book(namespace_id)
  const lobbies = request.is_spectator ? book?.spectating : book?.open_lobbies
  const is_open = action === 'find' && next.fill_outdated_lobbies && lobbies?.hasVersion(version_id)
  // A lobby that checks a version before its deploy is open, and not for players.
  const may_fill = is_open && (await ctx.namespaces.wasDeployed(namespace_id, version_id))
  const seat = book?.seatOf(request.seat_key, ctx.books.nowMs())
  const has_seat = seat != null && book?.lobbies.get(seat.lobby_id)?.version_id === version_id
  if (!may_fill && !has_seat) throw replaced(next.version_id)
  const game_modes = await ctx.namespaces.gameModes(version_id)
  return { ...next, version_id, game_modes, replaced_by: next.version_id }
}

/**
 * Throws MATCHMAKER_VERSION_REPLACED when a find for an earlier version can get no seat now. To be called before a captcha
 * or a verification: after it the book decides.
 */
export function requireOutdatedSeat(
  { books }: MatchmakerContext,
  { namespace_id }: Requester,
  find: OutdatedFind,
  with_party: boolean,
): void {
  if (find.replaced_by === undefined) return
  const book = books.book(namespace_id)
  if (book === undefined || !hasOutdatedSeat(book, find, with_party, books.nowMs())) throw replaced(find.replaced_by)
}

/** Throws MATCHMAKER_VERSION_REPLACED when the lobby of a join is of another version than the request. */
export async function requireSameVersion(
  { namespaces }: MatchmakerContext,
  { namespace_id, client_key }: Requester,
  lobby: { version_id: string },
  version_id: string,
): Promise<void> {
  if (lobby.version_id === version_id) return
  const current = await namespaces.current(namespace_id)
  const lobby_version_id = lobby.version_id
  if (recordWith(current, version_id) === null) {
    const next = recordOfClient(current, client_key)
    throw new ApiError('MATCHMAKER_VERSION_REPLACED', { version_id: next.version_id, lobby_version_id })
  }
  // The page is of a version that is deployed: to load it again would change nothing.
  const is_earlier = recordWith(current, lobby_version_id) === null
  const message = `The lobby is of ${is_earlier ? 'an earlier' : 'another'} version of the game.`
  throw new ApiError('MATCHMAKER_VERSION_REPLACED', { version_id, lobby_version_id }, { message })
}

/** `version_id`: the version that the page gets when it reloads. */
function replaced(version_id: string): ApiError {
  return new ApiError('MATCHMAKER_VERSION_REPLACED', { version_id })
}
