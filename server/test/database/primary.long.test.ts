// The server that accepts writes: found among several, followed after a failover, and never a standby or a fork.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import { readConfig } from '../../src/config/read-config.ts'
import { ASYNCHRONOUS } from '../../src/database/asynchronous.ts'
import { connect } from '../../src/database/connect.ts'
import { createListener } from '../../src/database/listen.ts'
import { migrate } from '../../src/database/migrate.ts'
import { findPrimaryUrl } from '../../src/database/primary.ts'
import { examineDatabase } from '../../src/doctor/database.ts'
import { newId } from '../../src/ids.ts'
import { append, didCommit } from '../../src/matchmaker/shards/fence.ts'
import { until } from '../support/until.ts'
import { silent } from './harness.ts'
import { Standbys } from './standbys.ts'

let cluster: Standbys

before(async () => {
  cluster = await Standbys.start(3)
  const { db, close } = connect({ url: cluster.url, application_name: 'migration' })
  await migrate(db)
  await close()
})
after(() => cluster.stop())

const PORT_SQL = 'select inet_server_port() as port'

function open(log = silent) {
  const connection = connect({ url: cluster.url, application_name: 'test', log })
  const portOf = async (): Promise<number> => (await connection.pool.query(PORT_SQL)).rows[0].port
  return { ...connection, portOf }
}

const portOfPrimary = (): number => Number(new URL(cluster.urlOf(cluster.primary)).port)

test('a standby that is named alone is refused', async () => {
  const { pool, close } = connect({ url: cluster.urlOf(cluster.standbys[0]!), application_name: 'test', log: silent })
  try {
    await assert.rejects(pool.query('select 1'), /accepts no writes/)
  } finally {
    await close()
  }
})

test('a commit whose wait for a standby is cancelled is not acknowledged, and its outcome is found out later', async () => {
  const { pool, close } = open()
  const row = { shard: 1, seq: 1, writer: newId(Date.now()), payload: Buffer.from('page') }
  try {
    await pool.query('select 1')
    for (const standby of cluster.standbys) await cluster.signal(standby, 'SIGSTOP')
    const appending = append(pool, row)
    const waiting =
      "select pid from pg_stat_activity where wait_event = 'SyncRep' and query like '%insert into journal%'"
    const [{ pid }] = (await until('the commit to wait', async () => {
      const rows = await cluster.ask<{ pid: number }>(cluster.primary, waiting)
      return rows.length === 1 && rows
    })) as [{ pid: number }]
    await cluster.ask(cluster.primary, 'select pg_cancel_backend($1)', [pid])
    assert.equal((await appending).kind, 'unknown')
    // The same row again: PostgreSQL has committed the first one on this server.
    assert.equal((await append(pool, row)).kind, 'deposed')
    for (const standby of cluster.standbys) await cluster.signal(standby, 'SIGCONT')
    assert.equal(await didCommit(pool, row), true)
  } finally {
    for (const standby of cluster.standbys) await cluster.signal(standby, 'SIGCONT')
    await close()
  }
})

test('a write that no response promises waits for no standby', async () => {
  const { pool, close } = open()
  try {
    await pool.query('create table noted (n integer)')
    for (const standby of cluster.standbys) await cluster.signal(standby, 'SIGSTOP')
    await pool.query(`insert into noted select 1 from ${ASYNCHRONOUS}`)
    const { rows } = await pool.query('show synchronous_commit')
    assert.deepEqual(rows, [{ synchronous_commit: 'on' }])
  } finally {
    for (const standby of cluster.standbys) await cluster.signal(standby, 'SIGCONT')
    await close()
  }
})

test('the doctor names the primary, and warns when commits do not wait for a standby', async () => {
  const config = readConfig({ DATABASE_URL: cluster.url })
  const messages = async (): Promise<string[]> =>
    (await examineDatabase(config)).map(({ status, message }) => `${status} ${message}`)
  const name = `127.0.0.1:${portOfPrimary()}`
  assert.ok((await messages()).includes(`ok ${name} is the primary; commits wait for a standby`))
  const setNames = async (names: string): Promise<void> => {
    await cluster.ask(cluster.primary, `alter system set synchronous_standby_names = '${names}'`)
    await cluster.ask(cluster.primary, 'select pg_reload_conf()')
    const sql = `select 1 from pg_settings where name = 'synchronous_standby_names' and setting = $1`
    await until('the setting to apply', async () => (await cluster.ask(cluster.primary, sql, [names])).length === 1)
  }
  try {
    await setNames('')
    assert.ok((await messages()).some((message) => message.startsWith(`warning Commits on ${name} do not wait`)))
  } finally {
    await setNames('ANY 1 (*)')
  }
})

test('after a failover queries, notifications and new connections go to the new primary', async () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
  const { pool, portOf, primary, close } = open(log)
  const listener = createListener({ url: cluster.url, primary, log })
  try {
    assert.equal(await portOf(), portOfPrimary())
    let wakes = 0
    listener.on('moved', () => void wakes++)
    await until('listening', () => wakes === 1)
    await pool.query('create table kept (n integer)')
    await pool.query('insert into kept values (1)')

    const old = cluster.primary
    await cluster.kill(old)
    await cluster.promote()
    await until('the pool to have moved', () =>
      portOf().then(
        (port) => port === portOfPrimary(),
        () => false,
      ),
    )
    assert.deepEqual((await pool.query('select n from kept')).rows, [{ n: 1 }])
    await pool.query('insert into kept values (2)')
    await until('listening again', () => wakes >= 2)
    const before = wakes
    await pool.query("select pg_notify('moved', 'by the new primary')")
    await until('a notification of the new primary', () => wakes > before)
    assert.ok(lines.some((line) => line.includes('primary of the database found')))
    await cluster.join(old)
  } finally {
    await listener.close()
    await close()
  }
})

test('a primary that hangs is left for the one that replaced it, and is not used when it responds again', async () => {
  const { pool, portOf, close } = open()
  const old = cluster.primary
  try {
    assert.equal(await portOf(), portOfPrimary())
    await cluster.signal(old, 'SIGSTOP')
    const hanging = pool.query('insert into kept values (3)').then(
      () => 'committed',
      () => 'broken',
    )
    await cluster.promote()
    // The connection to the old primary is half-open: nothing but the search ends it.
    assert.equal(await hanging, 'broken')
    await until('the pool to have moved', () =>
      portOf().then(
        (port) => port === portOfPrimary(),
        () => false,
      ),
    )

    await cluster.signal(old, 'SIGCONT')
    await until('the old primary to respond', () => cluster.ask(old, 'select 1').then(() => true))
    // It still believes that it is the primary, and comes first in the URL or not.
    assert.equal(
      (await cluster.ask<{ is_standby: boolean }>(old, 'select pg_is_in_recovery() as is_standby'))[0]!.is_standby,
      false,
    )
    assert.equal(await findPrimaryUrl(cluster.url).then((url) => Number(new URL(url).port)), portOfPrimary())
    assert.equal(await portOf(), portOfPrimary())
  } finally {
    await close()
    await cluster.kill(old)
    await cluster.join(old)
  }
})

test('a fork alone is never used: a commit on it does not return', async () => {
  const old = cluster.primary
  await cluster.signal(old, 'SIGSTOP')
  await cluster.promote()
  const { pool, close } = open()
  try {
    // The new primary is out of reach, and the old one responds again.
    await cluster.signal(cluster.primary, 'SIGSTOP')
    await cluster.signal(old, 'SIGCONT')
    await assert.rejects(pool.query('select 1'), /no server of DATABASE_URL accepts writes/)
    await delay(1_000)
    await cluster.signal(cluster.primary, 'SIGCONT')
    await until('a query on the new primary', () =>
      pool.query(PORT_SQL).then(
        ({ rows }) => rows[0].port === portOfPrimary(),
        () => false,
      ),
    )
  } finally {
    await cluster.signal(cluster.primary, 'SIGCONT')
    await close()
    await cluster.kill(old)
    await cluster.join(old)
  }
})
