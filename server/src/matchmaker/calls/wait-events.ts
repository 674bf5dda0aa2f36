// Events of a request that waits for a match, for its caller and for the members of its party. They are not stored: an event is the
// state of the request at its time. The index of a stream names the request and the state that was sent, so any process that
// has the books goes on from it.
//
// In an index, a mark is two words of 36 characters that begin with dashes. Programs of earlier versions take them for ids of seats
// that were sent, which do no harm.
import { hash } from 'node:crypto'
import { newId } from '../../ids.ts'
import type { Ticket } from '../book/matching/ticket.ts'
import type { Book } from '../book/state.ts'
import { waitingMetadata } from '../seats/matching/match-wait.ts'
import type { WaitViews } from '../seats/matching/wait-views.ts'

/** The request that was shown last, when, and its state then. */
export type WaitMark = { ticket_id: string; ms: number; state: string }

/** `event`: its JSON; null: nothing is new. `mark`: null: no request waits that was shown. */
export type WaitNews = { event: string | null; mark: WaitMark | null }

export type WaitReader = {
  views: WaitViews
  namespace_id: string
  identity_id: string
  every_ms: number
}

const TICKET_WORD = /^----([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/
const STATE_WORD = /^-----([0-9a-f]{11})([0-9a-f]{20})$/
const STATE_LENGTH = 20
const MS_LENGTH = 11

export function waitNews(reader: WaitReader, book: Book, sent: WaitMark | null, now_ms: number): WaitNews {
  if (sent !== null && book.matching.get(sent.ticket_id) === undefined) return newsOfEnd(reader, book, sent, now_ms)
  const ticket = book.matching.ofIdentity(reader.identity_id)
  return ticket === undefined ? { event: null, mark: null } : newsOfTicket(reader, book, ticket, sent, now_ms)
}

/** Whether the state may change without a commit that wakes the stream. */
export function mayWait(book: Book | undefined, identity_id: string, sent: WaitMark | null): boolean {
  return sent !== null || book?.matching.ofIdentity(identity_id) !== undefined
}

function newsOfTicket(
  { views, namespace_id, every_ms }: WaitReader,
  book: Book,
  ticket: Ticket,
  sent: WaitMark | null,
  now_ms: number,
): WaitNews {
  const before = sent?.ticket_id === ticket.player_id ? sent : null
  const nothing = { event: null, mark: sent }
  if (before !== null && now_ms - before.ms < every_ms) return nothing
  const view = views.viewOf(namespace_id, book, ticket, now_ms)
  if (view === null) return nothing
  const { waited_ms, ...metadata } = waitingMetadata(view.match_wait)
  // Time alone is no news.
  const state = stateOf(JSON.stringify(metadata, (name, value) => (name === 'widens_in_ms' ? undefined : value)))
  if (before?.state === state) return nothing
  const event = eventText(view.ms, 'matchmaker_waiting', { waited_ms, ...metadata })
  return { event, mark: { ticket_id: ticket.player_id, ms: now_ms, state } }
}

/** The request that was shown has a match, or has ended without one. */
function newsOfEnd({ identity_id }: WaitReader, book: Book, sent: WaitMark, now_ms: number): WaitNews {
  const { ticket_id } = sent
  const ended = (ms: number, kind: object): WaitNews => ({
    event: eventText(ms, 'matchmaker_wait_ended', kind),
    mark: null,
  })
  const seat = book.seatsOf(identity_id).findLast(({ match }) => match?.ticket_id === ticket_id)
  if (seat === undefined) {
    const reason = book.matching.endOf(ticket_id) ?? 'unknown'
    return ended(now_ms, { reason: reason === 'matched' ? 'unknown' : reason })
  }
  const { lobby_id, create_ms, remove_ms } = seat
  const { ready_ms = null, stop_ms = null } = book.lobbies.get(lobby_id) ?? {}
  if (ready_ms !== null && (remove_ms === null || remove_ms >= ready_ms)) {
    return ended(Math.max(create_ms, ready_ms), { reason: 'ready', lobby_id })
  }
  if (remove_ms !== null || stop_ms !== null || !book.lobbies.has(lobby_id)) {
    return ended(remove_ms ?? stop_ms ?? now_ms, { reason: 'failed', lobby_id })
  }
  const state = stateOf(lobby_id)
  if (state === sent.state) return { event: null, mark: sent }
  const event = eventText(create_ms, 'matchmaker_waiting', { reason: 'starting', lobby_id })
  return { event, mark: { ticket_id, ms: now_ms, state } }
}

function stateOf(text: string): string {
  return hash('sha256', text).slice(0, STATE_LENGTH)
}

function eventText(ms: number, name: string, kind: object): string {
  return JSON.stringify({ event_id: newId(ms), ts: new Date(ms).toISOString(), kind: { [name]: kind } })
}

/** The words of a mark in an index. */
export function wordsOf(mark: WaitMark | null): string[] {
  if (mark === null) return []
  const { ticket_id, ms, state } = mark
  return [`----${ticket_id.replaceAll('-', '')}`, `-----${ms.toString(16).padStart(MS_LENGTH, '0')}${state}`]
}

/** The mark in the words of an index, and the other words. */
export function takeMark(words: readonly string[]): { mark: WaitMark | null; others: string[] } {
  const others = words.filter((word) => !word.startsWith('----'))
  const ticket = words.map((word) => TICKET_WORD.exec(word)).find((match) => match !== null)
  const state = words.map((word) => STATE_WORD.exec(word)).find((match) => match !== null)
  if (ticket === undefined || state === undefined) return { mark: null, others }
  const mark = { ticket_id: ticket.slice(1).join('-'), ms: Number.parseInt(state[1]!, 16), state: state[2]! }
  return { mark, others }
}
