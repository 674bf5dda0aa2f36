// A command that would break a law, among others of the same batch: it fails alone, and what is needed to find out why is logged.
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { pino } from 'pino'
import { newId } from '../../src/ids.ts'
import type { Decision } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import { createDatabase } from '../support/database.ts'
import { at, lobbyPlan, requestedSeat } from './plain-requests.ts'
import { newNamespace, openDatabase, openLocalWriter, readJournal, seatedIn } from './writers.ts'

test('a command that would break a law fails alone, is not in the journal, and is logged with what it was about', async (t) => {
  const url = await createDatabase(t)
  const lines: string[] = []
  const log = pino(
    { level: 'error' },
    new Writable({
      write(line, _, done) {
        lines.push(String(line))
        done()
      },
    }),
  )
  const writer = await openLocalWriter(t, url, { log })
  const namespace_id = newNamespace()
  const create = (book: Book, client: string, lobby_count_max: number): Decision<unknown> =>
    decide.create(
      book,
      { ...requestedSeat({ client_key: client, lobby_count_max }), plan: lobbyPlan() },
      { lobby_id: newId(Date.now()), player_id: newId(Date.now()) },
      at(Date.now()),
    )
  /** A fault as it might be: two decisions on one state. */
  const twice = (book: Book): Decision<unknown> => {
    const decisions = [create(book, 'bad', 2), create(book, 'bad', 2)]
    return { changes: decisions.flatMap((decision) => ('changes' in decision ? decision.changes : [])), result: null }
  }
  const outcomes = await Promise.allSettled([
    writer.books.commit(namespace_id, (book) => create(book, 'first', 1)),
    writer.books.commit(namespace_id, twice),
    writer.books.commit(namespace_id, (book) => create(book, 'last', 2)),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const journal = await readJournal(await openDatabase(t, url), namespace_id)
  assert.deepEqual(
    seatedIn(journal).map(({ client }) => client),
    ['first', 'last'],
  )
  assert.equal(writer.books.book(namespace_id)?.live_lobby_count, 2)
  const [line, ...more] = lines.map((text) => JSON.parse(text))
  assert.deepEqual(more, [])
  assert.match(line.err.message, /^L3/)
  assert.equal(line.namespace_id, namespace_id)
  const { client, live_lobby_count, lobby_count_max } = line.err.facts
  assert.deepEqual(
    { client, live_lobby_count, lobby_count_max },
    { client: 'bad', live_lobby_count: 3, lobby_count_max: 2 },
  )
})
