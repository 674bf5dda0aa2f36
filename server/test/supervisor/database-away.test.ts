// Roles survive every fault of their database, while they serve and while they start. Real processes under traffic, and a
// PostgreSQL that closes its connections, crashes, hangs and is killed.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { findLobby, listGroups, setupIdentity } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import pg from 'pg'
import { ROLES, type Role } from '../../src/config/roles.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { createTestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { freeSettings, roleOf, type Started, startMuster, temporaryFolder } from './started.ts'

const CUTS = 40
const CUT_EVERY_MS = 15
/** Longer than a role waits for a response (fence.ts, 5 s). */
const HANG_MS = 6_000
const CALLERS = 4

type World = {
  folder: string
  muster: Started
  database_url: string
  /** Whether a seat is given, which only a leading matchmaker whose journal commits can do. */
  isServing: () => Promise<boolean>
  /** Calls that query the database in api and matchmaker. They may fail while it is away. */
  calls: (() => Promise<unknown>)[]
}

test('no role dies of a fault of its database, and a role that starts meanwhile begins to serve', async (t) => {
  const world = await startWorld(t)
  const roles = rolesOf(world)
  t.after(startTraffic(world))
  for (const [what, harm] of Object.entries(HARMS)) {
    await harm(world)
    await until(`seats after: ${what}`, world.isServing)
    assert.deepEqual(rolesOf(world), roles, `after: ${what}\n${world.muster.output()}`)
  }
  const { 'the server hangs': _, ...moments } = HARMS
  for (const [what, harm] of Object.entries(moments)) {
    await startAgain(world, 'matchmaker')
    await harm(world)
    await until(`seats from the next matchmaker, after: ${what}`, world.isServing)
    const { matchmaker } = rolesOf(world)
    assert.deepEqual(rolesOf(world), { ...roles, matchmaker }, `after: ${what}\n${world.muster.output()}`)
  }
  world.muster.signalGroup('SIGINT')
  assert.deepEqual(await world.muster.ended, { code: 0, signal: null })
})

const HARMS: Record<string, (world: World) => Promise<void>> = {
  /** Ends every connection of the platform, repeatedly: during a query, between queries, while it is being opened. */
  'connections are ended': async ({ database_url }) => {
    const client = await open(database_url)
    for (let count = 0; count < CUTS; count++) {
      await client.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'muster%'")
      await delay(CUT_EVERY_MS)
    }
    await client.end()
  },
  /** Kills one backend. The server then ends all others, without a message to their clients, and recovers. */
  'a backend is killed': async ({ database_url }) => {
    const witness = await open(database_url)
    const ended = new Promise((resolve) => witness.once('end', resolve))
    const { rows } = await witness.query<{ pid: number }>(
      "select pid from pg_stat_activity where application_name like 'muster%' limit 1",
    )
    assert.ok(rows[0])
    process.kill(rows[0].pid, 'SIGKILL')
    await ended
  },
  'the server hangs': async ({ folder }) => {
    const processes = postgresOf(folder)
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    await delay(HANG_MS)
    for (const pid of processes) process.kill(pid, 'SIGCONT')
  },
  'the server is killed': async ({ folder, muster }) => {
    const livesOf = (): number => muster.output().split('PostgreSQL is back').length
    const lives = livesOf()
    process.kill(Number(readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
    await until('PostgreSQL to come back', () => livesOf() > lives)
  },
}

async function startWorld(t: TestContext): Promise<World> {
  const folder = temporaryFolder(t)
  const settings = {
    ...(await freeSettings(folder)),
    MUSTER_RATE_LIMIT_SEATS: '0',
    MUSTER_RATE_LIMIT_MATCHMAKER: '0',
    MUSTER_RATE_LIMIT_CLOUD: '0',
    MUSTER_IP_SEED: 'off',
  }
  await placeCluster(folder)
  const muster = startMuster(settings)
  await muster.ready
  const url = `http://127.0.0.1:${settings.MUSTER_EDGE_HTTP_PORT}`
  const as = (token: string) => createClient({ url, token })
  const client = as(readFileSync(join(folder, 'admin-token'), 'utf8').trim())
  const api_url = `http://127.0.0.1:${settings.MUSTER_API_PORT}`
  const { player } = await createTestGame(
    { client, as, api_url },
    { matchmaker: { game_modes: { default: { max_players: 256 } } }, limits: { max_players_per_client: 256 } },
  )
  const find = () => player.call(findLobby, { body: { game_modes: ['default'] } })
  await find()
  const api = roleOf(folder, 'api')
  assert.ok(api)
  const database_url = /DATABASE_URL=([^\0]+)/.exec(readFileSync(`/proc/${api}/environ`, 'utf8'))?.[1]
  assert.ok(database_url)
  return {
    folder,
    muster,
    database_url,
    isServing: () =>
      find().then(
        () => true,
        () => false,
      ),
    calls: [() => player.call(setupIdentity, { body: {} }), () => client.call(listGroups, {})],
  }
}

/** Sends requests until it is stopped. Responses are ignored, because meanwhile they may be refusals. */
function startTraffic({ calls }: World): () => Promise<void> {
  let is_over = false
  const work = async (caller: number): Promise<void> => {
    for (let count = caller; !is_over; count++) await calls[count % calls.length]!().catch(() => undefined)
  }
  const working = Promise.all(Array.from({ length: CALLERS }, (_, caller) => work(caller)))
  return async () => {
    is_over = true
    await working
  }
}

function rolesOf({ folder }: World): Record<string, number | undefined> {
  return Object.fromEntries(ROLES.map((role) => [role, roleOf(folder, role)]))
}

/** Kills the role, and returns when its next process has begun to start. */
async function startAgain({ folder }: World, role: Role): Promise<void> {
  const before = roleOf(folder, role)
  assert.ok(before)
  process.kill(before, 'SIGKILL')
  await until(`the next ${role}`, () => ![before, undefined].includes(roleOf(folder, role)))
}

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** All its processes work in its folder. */
function postgresOf(folder: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return readlinkSync(`/proc/${name}/cwd`) === join(folder, 'postgres') ? [Number(name)] : []
    } catch {
      // No process, or one that has ended.
      return []
    }
  })
}
