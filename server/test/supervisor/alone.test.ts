// The program without a supervisor, as in production: its own signals, its own migration.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { ROLES } from '../../src/config/roles.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { bareDatabase } from '../backup/steps.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { until } from '../support/until.ts'
import { runProgram } from './program.ts'
import { freeSettings, statusOf, temporaryFolder } from './started.ts'

test('two programs started at once on an empty database both serve, and end on SIGTERM', async (t) => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = await bareDatabase(t)
  const settings = { ...(await freeSettings(folder)), DATABASE_URL }
  const programs = ['api', 'edge'].map((role) => runProgram({ ...settings, MUSTER_ROLES: role }))
  for (const port of [settings.MUSTER_API_PORT, settings.MUSTER_EDGE_HTTP_PORT]) {
    await until(`port ${port} to respond`, async () => (await statusOf(`http://127.0.0.1:${port}/`)) !== null)
  }
  for (const program of programs) program.kill('SIGTERM')
  for (const program of programs) {
    assert.equal(await program.code, 0, program.output())
    assert.doesNotMatch(program.output(), /does not end and is cut off/)
  }
})

test('a stopping edge reports it to its load balancer, and serves until the drain time is over', async (t) => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = await createDatabase(t)
  const [health_port] = (await freePorts(1)) as [number]
  const settings = { ...(await freeSettings(folder)), DATABASE_URL, MUSTER_ROLES: 'edge' }
  const program = runProgram({
    ...settings,
    MUSTER_METRICS_PORT: String(health_port - ROLES.indexOf('edge')),
    MUSTER_DRAIN_SECONDS: '5',
  })
  const health = `http://127.0.0.1:${health_port}/health/ready`
  await until('it is ready', async () => (await statusOf(health)) === 200)
  program.kill('SIGTERM')
  await until('it is no longer ready', async () => (await statusOf(health)) === 503)
  assert.notEqual(await statusOf(`http://127.0.0.1:${settings.MUSTER_EDGE_HTTP_PORT}/`), null, 'it still serves')
  assert.equal(await program.code, 0, program.output())
})

test('without a database the program reports what is missing', async (t) => {
  const folder = temporaryFolder(t)
  const none = runProgram({ MUSTER_DATA: folder, MUSTER_ROLES: 'api' })
  assert.equal(await none.code, 1)
  assert.match(none.output(), /DATABASE_URL must be set/)
  const absent = runProgram({
    MUSTER_DATA: folder,
    MUSTER_ROLES: 'api',
    DATABASE_URL: 'postgres://nobody:secret@127.0.0.1:1/none',
  })
  assert.equal(await absent.code, 1)
  assert.match(absent.output(), /PostgreSQL does not respond at 127\.0\.0\.1:1\/none/)
})

test('a role whose port is taken names the setting to change, and its process ends', async (t) => {
  const folder = temporaryFolder(t)
  const DATABASE_URL = await createDatabase(t)
  const settings = { ...(await freeSettings(folder)), DATABASE_URL }
  for (const [role, setting] of [
    ['api', 'MUSTER_API_PORT'],
    ['matchmaker', 'MUSTER_MATCHMAKER_PORT'],
    ['matchmaker', 'MUSTER_LOBBY_API_PORT'],
    ['edge', 'MUSTER_EDGE_HTTP_PORT'],
  ] as const) {
    const other = createServer().listen(Number(settings[setting]), '127.0.0.1')
    await once(other, 'listening')
    t.after(() => other.close())
    const program = runProgram({ ...settings, MUSTER_ROLES: role })
    assert.equal(await program.code, 1)
    assert.match(program.output(), new RegExp(setting), role)
    assert.doesNotMatch(program.output(), /does not end and is cut off/, role)
  }
})

test('a role that is stopped while its database is away ends in good order', async (t) => {
  const folder = temporaryFolder(t)
  await placeCluster(folder)
  const postgres = await startEmbedded({ data_dir: folder, log: pino({ level: 'silent' }) })
  const settings = { ...(await freeSettings(folder)), DATABASE_URL: postgres.url }
  const programs = ['api', 'matchmaker', 'edge', 'runner'].map((role) =>
    runProgram({ ...settings, MUSTER_ROLES: role, MUSTER_DATA: join(folder, role) }),
  )
  for (const program of programs) await until('it is ready', () => program.output().includes('"ready"'))
  await postgres.stop()
  for (const program of programs) program.kill('SIGTERM')
  for (const program of programs) {
    assert.equal(await program.code, 0, program.output())
    assert.doesNotMatch(program.output(), /does not end and is cut off/)
  }
})
