// Lobbies whose processes have ended, as the matchmaker hears of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Kysely, PostgresDialect } from 'kysely'
import { pino } from 'pino'
import type { Schema } from '../../src/database/schema.ts'
import { newId } from '../../src/ids.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { FailedStarts } from '../../src/matchmaker/watch/failed-starts.ts'
import { watchRuns } from '../../src/matchmaker/watch/runs.ts'
import { createDatabase } from '../support/database.ts'
import { at, findRequest, lobbyPlan } from './plain-requests.ts'
import { newNamespace, openLocalWriter } from './writers.ts'

/** More than two pages of runs.ts. */
const LOBBIES = 1_100

test('all lobbies whose runs ended without a writer are stopped before any request is answered, however many', async (t) => {
  const writer = await openLocalWriter(t, await createDatabase(t))
  const namespace_id = newNamespace()
  await Promise.all(
    Array.from({ length: LOBBIES }, () =>
      writer.books.commit(namespace_id, (book, { now_ms }) =>
        decide.create(
          book,
          { ...findRequest(), plan: lobbyPlan() },
          { lobby_id: newId(now_ms), player_id: newId(now_ms) },
          at(now_ms),
        ),
      ),
    ),
  )
  await writer.projection.flush()
  await writer.pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, exit_ts)
     select lobby_id, 'test', 'process', '{}', '{}', now() from lobbies`,
  )
  // There is one look, at the beginning, and no other.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: writer.pool }) })
  const listener = { on: () => () => {}, notify: async () => {}, close: async () => {} }
  const book = writer.books.book(namespace_id)!
  assert.equal(book.live_lobby_count, LOBBIES)
  const watch = await watchRuns(
    { db, listener, log: pino({ level: 'silent' }) },
    writer.books,
    new FailedStarts(writer.books),
    () => [],
  )
  t.mock.timers.reset()
  assert.equal(book.live_lobby_count, 0)
  for (const lobby of book.lobbies.values()) assert.equal(lobby.stop_reason, 'exited')
  await watch.close()
})
