// A book is made anew from its journal, and from its tables and the rest of the journal. Both must equal the original.
import assert from 'node:assert'
import type { Change } from '../../../src/journal/changes.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { apply, forget, setConnections, setIdleRules, setReported } from '../../../src/matchmaker/book/evolve.ts'
import { ALL_REPORTED_MS, type IdleRules, NO_IDLE_RULES } from '../../../src/matchmaker/book/idle.ts'
import { Book } from '../../../src/matchmaker/book/state.ts'
import type { PlainBook, PlainIdle } from '../plain-book/state.ts'
import { START_MS } from '../plain-requests.ts'
import { fingerprint } from './fingerprint.ts'
import { loadRows } from './stored-rows.ts'

/** The rows of all tables as JSON, and how many committed changes are in them. */
export type StoredRows = { text: string; change_count: number }

/** The book must have no holds. `rows`: null when no rows were stored. */
export function assertRebuilds(
  book: Book,
  reference: PlainBook,
  changes: readonly Change[],
  rows: StoredRows | null,
  now_ms: number,
): void {
  forget(book, now_ms)
  const print = fingerprint(book, now_ms)
  const replayed = new Book()
  setIdleRules(replayed, rulesOf(reference.idle))
  for (const change of changes) apply(replayed, change)
  forget(replayed, now_ms)
  reportConnections(replayed, reference)
  assert.equal(fingerprint(replayed, now_ms), print, 'the journal alone makes the same book')
  if (rows === null) return
  const loaded = new Book()
  setIdleRules(loaded, rulesOf(reference.idle))
  loadRows(loaded, rows.text)
  for (const change of changes.slice(rows.change_count)) apply(loaded, change)
  forget(loaded, now_ms)
  reportConnections(loaded, reference)
  assert.equal(fingerprint(loaded, now_ms), print, 'the tables and the journal after them make the same book')
  assertSameEnd([book, loaded, replayed], now_ms)
}

export const rulesOf = ({ version, max }: PlainIdle): IdleRules => ({ version_id: version, idle_max: () => max })

/** Reports the connections of the reference to a rebuilt book, which knows of none. */
function reportConnections(book: Book, { lobbies, reported }: PlainBook): void {
  for (const { id, open, closed_since } of lobbies) {
    if (closed_since !== null) setConnections(book, id, 1, closed_since)
    setConnections(book, id, open, closed_since ?? START_MS)
  }
  setReported(book, START_MS, reported)
}

/** Lets all lobbies expire, and asserts that the books become due at the same times. What is due in one millisecond may expire in any order. */
function assertSameEnd(books: readonly Book[], from_ms: number): void {
  const [book, ...others] = books as [Book, ...Book[]]
  const end_ms = from_ms + 100 * 3_600_000
  for (const one of books) {
    setIdleRules(one, NO_IDLE_RULES)
    for (const { lobby_id } of one.lobbies.values()) setConnections(one, lobby_id, 0, from_ms)
    setReported(one, START_MS, ALL_REPORTED_MS)
  }
  for (let now_ms = book.nextDueMs(); now_ms !== null && now_ms < end_ms; now_ms = book.nextDueMs()) {
    for (const one of books) {
      for (let change = decide.expire(one, now_ms); change !== null; change = decide.expire(one, now_ms))
        apply(one, change)
    }
    for (const other of others) assert.equal(other.nextDueMs(), book.nextDueMs())
  }
  for (const one of books) assert.equal(one.live_lobby_count, 0)
}
