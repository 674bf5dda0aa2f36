import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import type pg from 'pg'
import pino from 'pino'
import { type ConnectOptions, connect, type DatabaseConnection } from '../../src/database/connect.ts'
import { openDatabaseProxy } from '../matchmaker/database-proxy.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { openClient, undoAfter } from './harness.ts'

/** The connections of the pool. */
const OURS = "datname = current_database() and application_name = 'muster-test'"

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
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
  await until('the line in the log', () => lines.some((line) => line.includes('connection broke')))
  assert.deepEqual((await sql`select 1 as n`.execute(db)).rows, [{ n: 1 }])
})

for (const how of ['PostgreSQL says so', 'without a word'] as const) {
  test(`a connection that breaks in the middle of a query fails that query, and nothing else: ${how}`, async (t) => {
    const { db, pool, watcher, breakThose } = await openBreakable(t, how)
    for (const query of [
      () => sql`select pg_sleep(60)`.execute(db),
      () => pool.query('select pg_sleep(60)'),
      () => db.transaction().execute((trx) => sql`select pg_sleep(60)`.execute(trx)),
    ]) {
      const broken = assert.rejects(query())
      const which = "query = 'select pg_sleep(60)'"
      await until('the query to be under way', () => isThere(watcher, which))
      await breakThose(which)
      await broken
      await until('the pool to throw it away', () => pool.totalCount === 0)
      assert.deepEqual((await sql`select 1 as n`.execute(db)).rows, [{ n: 1 }])
    }
  })

  test(`a connection that breaks between two statements fails the next one, and nothing else: ${how}`, async (t) => {
    const { db, pool, breakThose } = await openBreakable(t, how)
    await assert.rejects(
      db.transaction().execute(async (trx) => {
        await sql`select 1`.execute(trx)
        await breakThose("state = 'idle in transaction'")
        await sql`select 2`.execute(trx)
      }),
    )
    const client = await pool.connect()
    await client.query('begin')
    const ended = new Promise<void>((resolve) => client.once('end', resolve))
    await breakThose("state = 'idle in transaction'")
    await ended
    await assert.rejects(client.query('commit'))
    client.release()
    await until('the pool to throw it away', () => pool.totalCount === 0)
    assert.deepEqual((await sql`select 1 as n`.execute(db)).rows, [{ n: 1 }])
  })
}

test('a connection that opens while this process is blocked succeeds, and a server that says nothing is given up', async (t) => {
  const { pool } = await open(t)
  const opening = pool.query('select 1 as n')
  // For longer than a connection may take.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_500)
  assert.deepEqual((await opening).rows, [{ n: 1 }])

  const silent = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  t.after(() => void silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const to_silent = connect({ url: `postgres://a:b@127.0.0.1:${port}/c`, application_name: 'muster-test' })
  undoAfter(t, to_silent.close)
  await assert.rejects(to_silent.pool.query('select 1'), /timeout expired/)
})

test('close waits for a query under way, and may be called twice', async (t) => {
  const { db, url, close } = await open(t)
  const client = await openClient(t, url)
  await client.query('select pg_advisory_lock(1)')
  const slow = sql`select pg_advisory_lock(1), 1 as n`.execute(db)
  await until('the query to be under way', async () => {
    const { rowCount } = await client.query("select 1 from pg_locks where locktype = 'advisory' and not granted")
    return rowCount !== 0
  })
  const closing = Promise.all([close(), close()])
  await client.query('select pg_advisory_unlock(1)')
  assert.equal((await slow).rows.length, 1)
  await closing
  await assert.rejects(sql`select 1`.execute(db))
})

/** A pool whose connections can be ended by PostgreSQL, which says so, or cut on their way. */
async function openBreakable(t: TestContext, how: 'PostgreSQL says so' | 'without a word') {
  const url = await createDatabase(t)
  const proxy = await openDatabaseProxy(t, url)
  const connection = connect({ url: proxy.url, application_name: 'muster-test' })
  undoAfter(t, connection.close)
  const watcher = await openClient(t, url)
  const breakThose = async (which: string): Promise<void> => {
    if (how === 'without a word') proxy.cut()
    await watcher.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS} and ${which}`)
  }
  return { ...connection, watcher, breakThose }
}

async function isThere(watcher: pg.Client, which: string): Promise<boolean> {
  return (await watcher.query(`select from pg_stat_activity where ${OURS} and ${which}`)).rowCount === 1
}

async function open(
  t: TestContext,
  options: Partial<ConnectOptions> = {},
): Promise<DatabaseConnection & { url: string }> {
  const url = await createDatabase(t)
  const connection = connect({ url, application_name: 'muster-test', ...options })
  undoAfter(t, connection.close)
  return { ...connection, url }
}
