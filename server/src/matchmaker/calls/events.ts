// The events of an identity: its seats in a party, from the moment the seat's lobby is ready, for as long as the book
// remembers the player. Events are not stored separately: an event is its seat, which is in the journal before it is sent
// and in the tables afterwards. So no crash loses one, and each is sent until the listener returns a later index. A listener may
// also ask what its find waits for (wait-events.ts).
//
// An index is the time of the latest events that were sent, their ids, and the wait that was shown. Book time never runs back, across restarts and
// machines, so no event can be earlier than an index that was sent. Several events may have the same time.
import { type ResponseOf, validationError, type watchEvents } from '@musterhost/contract'
import { type Prepared, prepare, preparedText } from '../../text/json-text.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { Book } from '../book/state.ts'
import { seatAnswer } from '../seats/answer.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import type { Patience } from '../shards/waiters.ts'
import { mayWait, takeMark, type WaitMark, type WaitReader, waitNews, wordsOf } from './wait-events.ts'

/** A listener without new events gets an empty response after this. */
const EVENTS_WAIT_MS = 40_000
/** Events of one response. Further ones follow with the next index. */
const EVENTS_MAX = 16

type Listener = CallerOf<'identity'>
/** `waiting_every_s`: undefined: without events of a request that waits. */
export type EventsQuery = { watch_index?: string; waiting_every_s?: number }
type Index = { ms: number; player_ids: readonly string[]; wait: WaitMark | null }
type News = { events: SeatEvent[]; wait: string | null; sent: Index }
type SeatEvent = { ms: number; player_id: string; lobby_id: string; is_open: boolean }
export type EventsAnswer = { is_empty: boolean; index: string; answer: Prepared<ResponseOf<typeof watchEvents>> }

const NOTHING: Index = { ms: 0, player_ids: [], wait: null }
const INDEX = /^(\d{1,16})((?:\.[0-9a-f-]{36}){0,34})$/

/**
 * The events after the index, waiting until there are some. Without an index: those whose seats are not connected yet, at
 * once. Throws VALIDATION_ERROR for an invalid index, and NAMESPACE_NOT_FOUND.
 */
export async function eventsFor(
  ctx: MatchmakerContext,
  listener: Listener,
  { watch_index, waiting_every_s }: EventsQuery,
  isGone: () => boolean,
): Promise<EventsAnswer> {
  const { books, wait_views: views } = ctx
  const { identity_id } = listener
  const { namespace_id } = await ctx.namespaces.get(listener.namespace_id)
  const sent = watch_index === undefined ? null : readIndex(watch_index)
  let is_answered = false
  const patience: Patience = { deadline_ms: ctx.elapsed() + EVENTS_WAIT_MS, isGone: () => is_answered || isGone() }
  const every_ms = (waiting_every_s ?? 0) * 1_000
  const waits: WaitReader | null = every_ms === 0 ? null : { views, namespace_id, identity_id, every_ms }
  for (;;) {
    const is_shown = waits !== null && mayWait(books.book(namespace_id), identity_id, sent?.wait ?? null)
    const woken =
      sent === null ? null : books.watch.next(identity_id, is_shown ? shorter(ctx, patience, waits) : patience)
    const news = await books.commit(namespace_id, (book, { now_ms }) => ({
      changes: [],
      result: newsOf(book, identity_id, sent, waits, now_ms),
    }))
    const is_over = books.isWaitingOver() || patience.deadline_ms <= ctx.elapsed() || isGone()
    if (news.events.length > 0 || news.wait !== null || woken === null || is_over) {
      is_answered = true
      return answerOf(ctx, namespace_id, news)
    }
    await (is_shown ? views.during(woken) : woken)
  }
}

/** Until the numbers of a request are read again. */
function shorter(ctx: MatchmakerContext, { deadline_ms, isGone }: Patience, { views, every_ms }: WaitReader): Patience {
  return { deadline_ms: Math.min(deadline_ms, ctx.elapsed() + views.pauseMs(every_ms)), isGone }
}

/** The events after `sent`, the earliest first, and the index after them. */
function newsOf(book: Book, identity_id: string, sent: Index | null, waits: WaitReader | null, now_ms: number): News {
  const { event: wait, mark } =
    waits === null ? { event: null, mark: null } : waitNews(waits, book, sent?.wait ?? null, now_ms)
  const { events, sent: seats_sent } = seatNews(book, identity_id, sent)
  return { events, wait, sent: { ...seats_sent, wait: mark } }
}

function seatNews(book: Book, identity_id: string, sent: Index | null): Pick<News, 'events' | 'sent'> {
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
  return { ms, player_ids: before.ms === ms ? [...before.player_ids, ...now] : now, wait: before.wait }
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
  const { mark, others } = takeMark(match[2]!.split('.').slice(1))
  return { ms: Number(match[1]), player_ids: others, wait: mark }
}

async function answerOf(
  ctx: MatchmakerContext,
  namespace_id: string,
  { events, wait, sent }: News,
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
  if (wait !== null) texts.push(wait)
  const index = [sent.ms, ...sent.player_ids, ...wordsOf(sent.wait)].join('.')
  const text = `{"events":[${texts.join()}],"watch":{"index":"${index}"}}`
  return { is_empty: texts.length === 0, index, answer: prepare(text) }
}
