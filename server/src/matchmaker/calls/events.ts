// The events of an identity: its seats in a party, from the moment the seat's lobby is ready, for as long as the book
// remembers the player. Events are not stored separately: an event is its seat, which is in the journal before it is sent
// and in the tables afterwards. So no crash loses one, and each is sent until the listener returns a later index.
//
// An index is the time of the latest events that were sent, and their ids. Book time never runs back, across restarts and
// machines, so no event can be earlier than an index that was sent. Several events may have the same time.
import { type ResponseOf, validationError, type watchEvents } from '@musterhost/contract'
import { type Prepared, prepare, preparedText } from '../../text/json-text.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { Book } from '../book/state.ts'
import { seatAnswer } from '../seats/answer.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import type { Patience } from '../shards/waiters.ts'

/** A listener without new events gets an empty response after this. */
const EVENTS_WAIT_MS = 40_000
/** Events of one response. Further ones follow with the next index. */
const EVENTS_MAX = 16

type Listener = CallerOf<'identity'>
type Index = { ms: number; player_ids: readonly string[] }
type SeatEvent = { ms: number; player_id: string; lobby_id: string; is_open: boolean }
export type EventsAnswer = { is_empty: boolean; index: string; answer: Prepared<ResponseOf<typeof watchEvents>> }

const NOTHING: Index = { ms: 0, player_ids: [] }
const INDEX = /^(\d{1,16})((?:\.[0-9a-f-]{36}){0,32})$/

/**
 * The events after the index, waiting until there are some. Without an index: those whose seats are not connected yet, at
 * once. Throws VALIDATION_ERROR for an invalid index, and NAMESPACE_NOT_FOUND.
 */
export async function eventsFor(
  ctx: MatchmakerContext,
  listener: Listener,
  watch_index: string | undefined,
  isGone: () => boolean,
): Promise<EventsAnswer> {
  const { books } = ctx
  const { namespace_id } = await ctx.namespaces.get(listener.namespace_id)
  const sent = watch_index === undefined ? null : readIndex(watch_index)
  const patience: Patience = { deadline_ms: ctx.elapsed() + EVENTS_WAIT_MS, isGone }
  for (;;) {
    const woken = sent === null ? null : books.watch.next(listener.identity_id, patience)
    const news = await books.commit(namespace_id, (book) => ({
      changes: [],
      result: newsOf(book, listener.identity_id, sent),
    }))
    const is_over = books.isWaitingOver() || patience.deadline_ms <= ctx.elapsed() || isGone()
    if (news.events.length > 0 || woken === null || is_over) return answerOf(ctx, namespace_id, news)
    await woken
  }
}

/** The events after `sent`, the earliest first, and the index after them. */
function newsOf(book: Book, identity_id: string, sent: Index | null): { events: SeatEvent[]; sent: Index } {
  const all = eventsOf(book, identity_id)
  if (sent === null) return { events: all.filter(({ is_open }) => is_open), sent: sentWith(NOTHING, all) }
  const isNew = ({ ms, player_id }: SeatEvent): boolean =>
    ms > sent.ms || (ms === sent.ms && !sent.player_ids.includes(player_id))
  const events = all.filter(isNew).slice(0, EVENTS_MAX)
  return { events, sent: sentWith(sent, events) }
}

function eventsOf(book: Book, identity_id: string): SeatEvent[] {
  const events: SeatEvent[] = []
  for (const player of book.partySeatsOf(identity_id)) {
    const { player_id, lobby_id, create_ms, connect_ms, remove_ms } = player
    const ready_ms = book.lobbies.get(lobby_id)?.ready_ms ?? null
    // A seat that ended before its lobby was ready is no event.
    if (ready_ms === null || (remove_ms !== null && remove_ms < ready_ms)) continue
    const is_open = remove_ms === null && connect_ms === null
    events.push({ ms: Math.max(create_ms, ready_ms), player_id, lobby_id, is_open })
  }
  return events.sort((a, b) => a.ms - b.ms || (a.player_id < b.player_id ? -1 : 1))
}

function sentWith(before: Index, events: readonly SeatEvent[]): Index {
  const ms = Math.max(before.ms, ...events.map((event) => event.ms))
  const now = events.filter((event) => event.ms === ms).map(({ player_id }) => player_id)
  return { ms, player_ids: before.ms === ms ? [...before.player_ids, ...now] : now }
}

/** Throws VALIDATION_ERROR for an invalid index. */
export function requireIndex(text: string): void {
  readIndex(text)
}

function readIndex(text: string): Index {
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
  { events, sent }: { events: readonly SeatEvent[]; sent: Index },
): Promise<EventsAnswer> {
  const texts: string[] = []
  for (const { player_id, lobby_id, ms } of events) {
    const book = ctx.books.book(namespace_id)
    // Forgotten while other events were prepared.
    if (book?.players.has(player_id) !== true || !book.lobbies.has(lobby_id)) continue
    const seat = preparedText(await seatAnswer(ctx, namespace_id, { lobby_id, player_id, is_ready: true }))
    const ts = new Date(ms).toISOString()
    texts.push(`{"event_id":"${player_id}","ts":"${ts}","kind":{"matchmaker_lobby_join":${seat}}}`)
  }
  const index = [sent.ms, ...sent.player_ids].join('.')
  const text = `{"events":[${texts.join()}],"watch":{"index":"${index}"}}`
  return { is_empty: texts.length === 0, index, answer: prepare(text) }
}
