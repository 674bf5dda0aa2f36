import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import pino from 'pino'
import { type Connection, type ConnectOptions, connect } from '../../src/database/connect.ts'
import { createDatabase } from '../database.ts'
import { openClient, undoAfter, waitFor } from './harness.ts'

test('bigint is read as a number, time as a Date, and a bigint beyond 2^53 is an error', async (t) => {
  const { db } = await open(t)
  const { rows } = await sql`
    select 9007199254740991::bigint as big, array[1, null, 3]::bigint[] as bigs, timestamptz '2026-01-02 03:04:05Z' as ts
  `.execute(db)
  assert.deepEqual(rows, [{ big: Number.MAX_SAFE_INTEGER, bigs: [1, null, 3], ts: new Date('2026-01-02T03:04:05Z') }])
  await assert.rejects(sql`select 9007199254740992::bigint as big`.execute(db), RangeError)
  // The connection survives it.
  assert.deepEqual((await sql`select 1 as n`.execute(db)).rows, [{ n: 1 }])
})

test('every connection has its limits and its name', async (t) => {
  const { pool } = await open(t, { connections_max: 3 })
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  for (const client of clients) {
    const { rows } = await client.query(`
      select current_setting('statement_timeout') as statement, current_setting('application_name') as name,
        current_setting('idle_in_transaction_session_timeout') as idle`)
    assert.deepEqual(rows, [{ statement: '10s', name: 'muster-test', idle: '10s' }])
    client.release()
  }
})

test('a connection that breaks while idle is logged, and the next query works', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
  const { db, url } = await open(t, { log })
  await sql`select 1`.execute(db)
  const client = await openClient(t, url)
  const others = "datname = current_database() and application_name = 'muster-test'"
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
  await waitFor('the line in the log', () => lines.some((line) => line.includes('connection broke')))
  assert.deepEqual((await sql`select 1 as n`.execute(db)).rows, [{ n: 1 }])
})

test('close waits for a query under way, and may be called twice', async (t) => {
  const { db, url, close } = await open(t)
  const client = await openClient(t, url)
  await client.query('select pg_advisory_lock(1)')
  const slow = sql`select pg_advisory_lock(1), 1 as n`.execute(db)
  await waitFor('the query to be under way', async () => {
    const { rowCount } = await client.query("select 1 from pg_locks where locktype = 'advisory' and not granted")
    return rowCount
  })
  const closing = Promise.all([close(), close()])
  await client.query('select pg_advisory_unlock(1)')
  assert.equal((await slow).rows.length, 1)
  await closing
  await assert.rejects(sql`select 1`.execute(db))
})

async function open(t: TestContext, options: Partial<ConnectOptions> = {}): Promise<Connection & { url: string }> {
  const url = await createDatabase(t)
  const connection = connect({ url, application_name: 'muster-test', ...options })
  undoAfter(t, connection.close)
  return { ...connection, url }
}
