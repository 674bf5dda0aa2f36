import assert from 'node:assert/strict'
import { test } from 'node:test'
import type pg from 'pg'
import { connect } from '../../src/database/connect.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const CONNECTIONS_MAX = 6

test('a burst of short requests opens few connections', async (t) => {
  const { pool, close } = connect({ url: await createDatabase(t), application_name: 'test' })
  t.after(close)
  await Promise.all(Array.from({ length: 200 }, () => pool.query('select 1')))
  assert.equal(pool.totalCount, 3)
})

test('requests get more connections while those there are held, up to the maximum', async (t) => {
  const url = await createDatabase(t)
  const { pool, close } = connect({ url, application_name: 'test', connections_max: CONNECTIONS_MAX })
  t.after(close)
  const held: pg.PoolClient[] = []
  // Each request waits for the one that the request before holds, as nested transactions do.
  while (held.length < CONNECTIONS_MAX) held.push(await pool.connect())
  assert.equal(pool.totalCount, CONNECTIONS_MAX)
  const late = pool.query('select 1')
  await until('the request to wait', () => pool.waitingCount === 1)
  held.pop()!.release()
  assert.equal((await late).rowCount, 1)
  assert.equal(pool.totalCount, CONNECTIONS_MAX)
  for (const client of held) client.release()
})

test('requests that wait for long get more connections, although each is served', async (t) => {
  const url = await createDatabase(t)
  const { pool, close } = connect({ url, application_name: 'test', connections_max: CONNECTIONS_MAX })
  t.after(close)
  let is_over = false
  const ask = async (): Promise<void> => {
    while (!is_over) await pool.query('select pg_sleep(0.01)')
  }
  const asking = Array.from({ length: 20 }, ask)
  await until('all connections to be open', () => pool.totalCount === CONNECTIONS_MAX)
  is_over = true
  await Promise.all(asking)
})
