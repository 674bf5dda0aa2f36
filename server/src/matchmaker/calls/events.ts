// What an identity is told: its seats in a party, each from the moment on in which the seat's lobby is ready, and for as
// long as the book remembers the player. There is no box of events beside the book: an event is its seat, which is in the
// journal before anybody is told, and in the tables after it. So none is lost by a crash at any point, and each is told
// until the listener shows an index from behind it.
//
// An index is the latest moment of which events were told, and which ones. Book time never runs back, over restarts and
// from one machine to the next, so no event can come to lie before an index that was given out; of one moment several
// may come one after the other.
import { type ResponseOf, validationError, type watchEvents } from '@muster/contract'
import type { CallerOf } from '../../caller.ts'
import { type Prepared, prepare, preparedText } from '../../json-text.ts'
import type { Book } from '../book/state.ts'
import { seatAnswer } from '../seats/answer.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import type { Patience } from '../shards/seat-waiters.ts'

/** A listener without news is answered after this. */
const EVENTS_WAIT_MS = 40_000
/** Of one answer; whoever has more gets them with his next index. */
const EVENTS_MAX = 16

type Listener = CallerOf<'identity'>
type Told = { ms: number; player_ids: readonly string[] }
type SeatEvent = { ms: number; player_id: string; lobby_id: string; is_open: boolean }
export type EventsAnswer = { is_empty: boolean; index: string; answer: Prepared<ResponseOf<typeof watchEvents>> }

const NOTHING: Told = { ms: 0, player_ids: [] }
const INDEX = /^(\d{1,16})((?:\.[0-9a-f-]{36}){0,32})$/

/**
 * The events behind the index, waited for until there are some; without an index those that are still open, at once. Throws
 * VALIDATION_ERROR for what is no index, and NAMESPACE_NOT_FOUND.
 */
export async function eventsFor(
  ctx: MatchmakerContext,
  listener: Listener,
  watch_index: string | undefined,
  isGone: () => boolean,
): Promise<EventsAnswer> {
  const { books } = ctx
  const { namespace_id } = await ctx.namespaces.get(listener.namespace_id)
  const told = watch_index === undefined ? null : readIndex(watch_index)
  const patience: Patience = { deadline_ms: ctx.elapsed() + EVENTS_WAIT_MS, isGone }
  for (;;) {
    const woken = told === null ? null : books.watch.next(listener.identity_id, patience)
    const news = await books.commit(namespace_id, (book) => ({
      changes: [],
      result: newsOf(book, listener.identity_id, told),
    }))
    const is_over = books.isWaitingOver() || patience.deadline_ms <= ctx.elapsed() || isGone()
    if (news.events.length > 0 || woken === null || is_over) return answerOf(ctx, namespace_id, news)
    await woken
  }
}

/** Those behind `told`, the earliest first, and what has been told with them. */
function newsOf(book: Book, identity_id: string, told: Told | null): { events: SeatEvent[]; told: Told } {
  const all = eventsOf(book, identity_id)
  if (told === null) return { events: all.filter(({ is_open }) => is_open), told: toldWith(NOTHING, all) }
  const isNew = ({ ms, player_id }: SeatEvent): boolean =>
    ms > told.ms || (ms === told.ms && !told.player_ids.includes(player_id))
  const events = all.filter(isNew).slice(0, EVENTS_MAX)
  return { events, told: toldWith(told, events) }
}

function eventsOf(book: Book, identity_id: string): SeatEvent[] {
  const events: SeatEvent[] = []
  for (const player of book.partySeatsOf(identity_id)) {
    const { player_id, lobby_id, create_ms, connect_ms, remove_ms } = player
    const ready_ms = book.lobbies.get(lobby_id)?.ready_ms ?? null
    // A seat that ended before its lobby was ready was none.
    if (ready_ms === null || (remove_ms !== null && remove_ms < ready_ms)) continue
    const is_open = remove_ms === null && connect_ms === null
    events.push({ ms: Math.max(create_ms, ready_ms), player_id, lobby_id, is_open })
  }
  return events.sort((a, b) => a.ms - b.ms || (a.player_id < b.player_id ? -1 : 1))
}

function toldWith(before: Told, events: readonly SeatEvent[]): Told {
  const ms = Math.max(before.ms, ...events.map((event) => event.ms))
  const now = events.filter((event) => event.ms === ms).map(({ player_id }) => player_id)
  return { ms, player_ids: before.ms === ms ? [...before.player_ids, ...now] : now }
}

/** Throws VALIDATION_ERROR for what is no index. */
export function requireIndex(text: string): void {
  readIndex(text)
}

function readIndex(text: string): Told {
  const match = INDEX.exec(text)
  if (match === null) {
    const message = 'A watch_index is what an answer had as its watch.index.'
    throw validationError([{ path: ['watch_index'], reason: 'invalid', message }])
  }
  return { ms: Number(match[1]), player_ids: match[2]!.split('.').slice(1) }
}

async function answerOf(
  ctx: MatchmakerContext,
  namespace_id: string,
  { events, told }: { events: readonly SeatEvent[]; told: Told },
): Promise<EventsAnswer> {
  const texts: string[] = []
  for (const { player_id, lobby_id, ms } of events) {
    const book = ctx.books.book(namespace_id)
    // Forgotten while others were being told.
    if (book?.players.has(player_id) !== true || !book.lobbies.has(lobby_id)) continue
    const seat = preparedText(await seatAnswer(ctx, namespace_id, { lobby_id, player_id, is_ready: true }))
    const ts = new Date(ms).toISOString()
    texts.push(`{"event_id":"${player_id}","ts":"${ts}","kind":{"matchmaker_lobby_join":${seat}}}`)
  }
  const index = [told.ms, ...told.player_ids].join('.')
  const text = `{"events":[${texts.join()}],"watch":{"index":"${index}"}}`
  return { is_empty: texts.length === 0, index, answer: prepare(text) }
}
