// The version that a request for a seat names, because its page was built for it. The deployed version changes nothing. After
// a deploy, a find for an earlier version gets a seat in an open lobby of that version, where the deployed version allows
// that. All other requests are refused with the version that is deployed, so that the page can reload, before a captcha or a
// verification. A repeated request keeps the seat that it got before the deploy.
//
// A new page may be here before the notification of its deploy. Before a refusal the deployed version is therefore read.
import { ApiError, type SeatAction } from '@musterhost/contract'
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
  if (version_id === undefined) return record
  return recordOfVersion(ctx, requester, version_id, {
    record,
    seat_key: seatKeyOf(requester, action, party === true),
    is_find: action === 'find',
    is_spectator: role === 'spectator',
  })
}

async function recordOfVersion(
  ctx: MatchmakerContext,
  { namespace_id }: Requester,
  version_id: string,
  request: {
    record: NamespaceRecord | Promise<NamespaceRecord>
    seat_key: string | null
    is_find: boolean
    is_spectator: boolean
  },
): Promise<PinnedRecord> {
  const record = await request.record
  if (record.version_id === version_id) return record
  const current = await ctx.namespaces.current(namespace_id)
  if (current.version_id === version_id) return current
  const book = ctx.books.book(namespace_id)
  const lobbies = request.is_spectator ? book?.spectating : book?.open_lobbies
  const is_open = request.is_find && current.fill_outdated_lobbies && lobbies?.hasVersion(version_id)
  // A lobby that checks a version before its deploy is open, and not for players.
  const may_fill = is_open && (await ctx.namespaces.wasDeployed(namespace_id, version_id))
  const seat = book?.seatOf(request.seat_key, ctx.books.nowMs())
  const has_seat = seat != null && book?.lobbies.get(seat.lobby_id)?.version_id === version_id
  if (!may_fill && !has_seat) throw replaced(current.version_id)
  const game_modes = await ctx.namespaces.gameModes(version_id)
  return { ...current, version_id, game_modes, replaced_by: current.version_id }
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
  { namespace_id }: Requester,
  lobby: { version_id: string },
  version_id: string,
): Promise<void> {
  if (lobby.version_id === version_id) return
  const current = await namespaces.current(namespace_id)
  const metadata = { version_id: current.version_id, lobby_version_id: lobby.version_id }
  if (current.version_id !== version_id) throw new ApiError('MATCHMAKER_VERSION_REPLACED', metadata)
  // No page of the site is of the lobby's version any more.
  const message = 'The lobby is of an earlier version of the game.'
  throw new ApiError('MATCHMAKER_VERSION_REPLACED', metadata, { message })
}

/** `version_id`: the deployed version, which the page gets when it reloads. */
function replaced(version_id: string): ApiError {
  return new ApiError('MATCHMAKER_VERSION_REPLACED', { version_id })
}
