// The embedded PostgreSQL while no process is killed: which clients may connect, and on which folders it refuses to start.
import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { StartError } from '../../src/config/start-error.ts'
import { type Embedded, type EmbeddedOptions, startEmbedded } from '../../src/database/embedded/embedded.ts'
import { lacking } from '../run/optional-programs.ts'
import { makeFolder, openClient, silent, undoAfter } from './harness.ts'

test('only its own user, with the password, gets in: no TCP, no trust, no superuser', async (t) => {
  const data_dir = await makeFolder(t)
  const { url } = await start(t, { data_dir })
  const client = await openClient(t, url)
  const { rows } = await client.query(`
    select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync,
      (select rolsuper from pg_roles where rolname = current_user) as is_superuser, current_database() as name`)
  assert.deepEqual(rows, [{ addresses: '', fsync: 'on', is_superuser: false, name: 'muster' }])

  await assert.rejects(new pg.Client(url.replace(/:[^:@]+@/, ':wrong@')).connect(), { code: '28P01' })
  await assert.rejects(new pg.Client(url.replace('//muster:', '//postgres:')).connect(), { code: '28000' })

  const socket_folder = new URLSearchParams(url.split('?')[1]).get('host') ?? ''
  assert.equal(statSync(socket_folder).mode & 0o777, 0o700)
  assert.equal(statSync(join(data_dir, 'keys')).mode & 0o077, 0)
  for (const name of readdirSync(join(data_dir, 'keys'))) {
    assert.equal(statSync(join(data_dir, 'keys', name)).mode & 0o777, 0o600, name)
  }
})

test('a second start on the same folder is refused, and the first one lives on', async (t) => {
  const data_dir = await makeFolder(t)
  const { url } = await start(t, { data_dir })
  const client = await openClient(t, url)
  await assert.rejects(startEmbedded({ data_dir, log: silent }), (error) => {
    return error instanceof StartError && /in use by another platform/.test(error.message)
  })
  await client.query('select 1')
})

test('says when it has ended, and can be stopped twice', async (t) => {
  const data_dir = await makeFolder(t)
  const embedded = await start(t, { data_dir })
  await Promise.all([embedded.stop(), embedded.stop()])
  assert.deepEqual(await embedded.exited, { code: 0, signal: null })
  await embedded.stop()
})

test('data of another major version of PostgreSQL is refused, with the way to move it', async (t) => {
  const data_dir = await makeFolder(t)
  mkdirSync(join(data_dir, 'postgres'), { mode: 0o700 })
  writeFileSync(join(data_dir, 'postgres', 'PG_VERSION'), '17\n')
  await assert.rejects(startEmbedded({ data_dir, log: silent }), (error) => {
    return (
      error instanceof StartError && /PostgreSQL 17.*PostgreSQL 18.*muster backup.*muster restore/s.test(error.message)
    )
  })
  assert.deepEqual(readdirSync(join(data_dir, 'postgres')), ['PG_VERSION'])
})

test('a folder in its place that is no cluster is not touched', async (t) => {
  const data_dir = await makeFolder(t)
  mkdirSync(join(data_dir, 'postgres'))
  writeFileSync(join(data_dir, 'postgres', 'letters.txt'), 'dear')
  await assert.rejects(startEmbedded({ data_dir, log: silent }), StartError)
  assert.equal(readFileSync(join(data_dir, 'postgres', 'letters.txt'), 'utf8'), 'dear')
})

test('a data folder that its user cannot reach is refused, with the way out', async (t) => {
  const missing = lacking('root')
  if (missing !== null) return t.skip(missing)
  const closed = await mkdtemp(join(tmpdir(), 'muster-closed-'))
  undoAfter(t, () => rm(closed, { recursive: true }))
  const data_dir = join(closed, 'data')
  await assert.rejects(startEmbedded({ data_dir, log: silent }), (error) => {
    assert(error instanceof StartError)
    assert(error.message.includes(`cannot enter ${closed}, on the way to ${data_dir}`), error.message)
    return /MUSTER_DATA.*DATABASE_URL/.test(error.message)
  })
  assert.equal(statSync(closed).mode & 0o777, 0o700)
})

test('a lost password is created anew, and a wrong one is reported', async (t) => {
  const data_dir = await makeFolder(t)
  const first = await start(t, { data_dir })
  await (await openClient(t, first.url)).query('create table kept as select 1 as n')
  await first.stop()

  const file = join(data_dir, 'keys', 'postgres-password')
  writeFileSync(file, 'another\n')
  await assert.rejects(startEmbedded({ data_dir, log: silent }), (error) => {
    return error instanceof StartError && /postgres-password/.test(error.message)
  })
  rmSync(file)
  const second = await start(t, { data_dir })
  assert.notEqual(second.url, first.url)
  const { rows } = await (await openClient(t, second.url)).query('select n from kept')
  assert.deepEqual(rows, [{ n: 1 }])
})

test('a folder for the socket that others can enter is not used', async (t) => {
  const data_dir = await makeFolder(t)
  const first = await start(t, { data_dir })
  await first.stop()
  const folder = readFileSync(join(data_dir, 'keys', 'postgres-run-folder'), 'utf8').trim()
  mkdirSync(folder)
  undoAfter(t, () => rm(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o777)

  const second = await start(t, { data_dir })
  assert(!second.url.includes(encodeURIComponent(folder)))
  assert.deepEqual(readdirSync(folder), [])
  await assert.rejects(startEmbedded({ data_dir: await makeFolder(t), run_dir: folder, log: silent }), StartError)
  const long = join(tmpdir(), 'a'.repeat(108))
  await assert.rejects(startEmbedded({ data_dir: await makeFolder(t), run_dir: long, log: silent }), StartError)
})

test('a lock whose process id belongs to another program by now does not keep it from starting', async (t) => {
  const data_dir = await makeFolder(t)
  const first = await start(t, { data_dir })
  const lock = join(data_dir, 'postgres', 'postmaster.pid')
  const lines = readFileSync(lock, 'utf8').split('\n')
  const { uid, gid } = lstatSync(lock)
  await first.stop()
  writeFileSync(lock, [process.pid, ...lines.slice(1)].join('\n'), { mode: 0o600 })
  if (process.geteuid?.() === 0) chownSync(lock, uid, gid)
  const second = await start(t, { data_dir })
  await (await openClient(t, second.url)).query('select 1')
})

async function start(t: TestContext, options: Omit<EmbeddedOptions, 'log'>): Promise<Embedded> {
  const embedded = await startEmbedded({ ...options, log: silent })
  undoAfter(t, () => embedded.stop())
  return embedded
}
