// Two machines with a platform each, and two with PostgreSQL and its standby: they work as one platform, and a machine that is cut
// off harms only itself.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createGroup, listGroups } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { Standbys } from '../database/standbys.ts'
import { ROLE_PROGRAM } from '../run/built-programs.ts'
import { Cluster, OWN_ADDRESS } from './cluster.ts'
import { inOwnNetwork } from './own-network.ts'
import { outputOf } from './programs.ts'
import { loadFactor, until } from './until.ts'

const DATABASES = ['db1', 'db2']
const PLATFORMS = ['one', 'two']
const CALL_MS_MAX = 3_000

type Platform = { data_dir: string; client: Client }

inOwnNetwork(import.meta.filename, () => {
  test('platforms on two machines are one platform, and one that is cut off catches up when it is back', async (t) => {
    const cluster = await Cluster.open(t, [...DATABASES, ...PLATFORMS])
    const standbys = await Standbys.start(
      2,
      DATABASES.map((name) => cluster.machine(name)),
    )
    t.after(() => standbys.stop())
    const one = await startPlatform(t, { cluster, name: 'one', database_url: standbys.url })
    const two = await startPlatform(t, { cluster, name: 'two', database_url: standbys.url, keys_of: one })

    await create(one, 'made by one')
    assert.deepEqual(await namesOf(two), ['made by one'])

    cluster.partition(['one'], [...DATABASES, 'two'])
    await assert.rejects(create(one, 'lost'))
    await create(two, 'made by two')

    cluster.heal()
    const seen = await until('the machine to be back', () => namesOf(one).catch(() => null))
    assert.ok(seen.includes('made by one') && seen.includes('made by two'), seen.join())
  })

  test('a test that is killed leaves neither a program nor a machine', async () => {
    const program = join(import.meta.dirname, 'cluster-program.ts')
    const child = spawn('unshare', ['--net', process.execPath, program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const output = outputOf(child)
    const line = await until('the cluster to be open', () => /^\[.*\]$/m.exec(output())?.[0])
    const ids = JSON.parse(line) as number[]
    assert.ok(ids.length >= 2 && ids.every((id) => sendSignal(id, 0)), line)
    child.kill('SIGKILL')
    await until('its processes to end', () => ids.every((id) => !sendSignal(id, 0)))
  })

  test('a link delays packets, loses some, or is cut, as a test says', async (t) => {
    const cluster = await Cluster.open(t, ['near', 'far'])
    const { address } = cluster.machine('far')
    const echo = `require('net').createServer((s) => s.pipe(s)).listen(5000, '0.0.0.0', () => console.log('listening'))`
    const output = outputOf(cluster.run('far', [process.execPath, '-e', echo]))
    await until('the echo to listen', () => output().includes('listening'))
    assert.ok((await roundTripMs(cluster, address)) < 500)

    const relay = await cluster.delay({ from: 'near', to: 'far', port: 5_000, ms: 300 })
    const delayed_ms = await roundTripMs(cluster, address)
    assert.ok(delayed_ms >= 600, `${delayed_ms} ms`)
    relay.setDelay(0)
    assert.ok((await roundTripMs(cluster, address)) < 600)
    cluster.partition(['near'], ['far'])
    assert.equal(await roundTripMs(cluster, address), Number.POSITIVE_INFINITY)
    cluster.heal()
    cluster.lose('near', 'far', 20)
    assert.ok((await roundTripMs(cluster, address)) < CALL_MS_MAX)
  })
})

/** Ends a call that gets no response. On a loaded machine a call that succeeds takes longer. */
function callSignal(): AbortSignal {
  return AbortSignal.timeout(Math.ceil(CALL_MS_MAX * loadFactor()))
}

/** One byte there and back, as a program on `near` measures it. Infinity: it did not come back in time. */
async function roundTripMs(cluster: Cluster, host: string): Promise<number> {
  const program = `const since = performance.now(); const s = require('net').connect(5000, '${host}', () => s.write('x'));
    s.on('data', () => { console.log('took ' + (performance.now() - since)); process.exit() });
    setTimeout(() => { console.log('took Infinity'); process.exit() }, ${CALL_MS_MAX})`
  const output = outputOf(cluster.run('near', [process.execPath, '-e', program]))
  return Number(await until('a round trip', () => /took (\S+)\n/.exec(output())?.[1]))
}

type PlatformOptions = { cluster: Cluster; name: string; database_url: string; keys_of?: Platform }

/** Api and matchmaker of one machine, in a data folder of their own. */
async function startPlatform(
  t: TestContext,
  { cluster, name, database_url, keys_of }: PlatformOptions,
): Promise<Platform> {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-cluster-'))
  t.after(() => rmSync(data_dir, { recursive: true, force: true }))
  if (keys_of !== undefined) cpSync(join(keys_of.data_dir, 'keys'), join(data_dir, 'keys'), { recursive: true })
  const { address } = cluster.machine(name)
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const env = {
    ...{ PATH, HOME, NODE_COMPILE_CACHE },
    MUSTER_DATA: data_dir,
    MUSTER_NODE: name,
    MUSTER_ROLES: 'api,matchmaker',
    MUSTER_INTERNAL_HOST: address,
    MUSTER_INTERNAL_PLAIN_FROM: OWN_ADDRESS,
    MUSTER_METRICS_PORT: '0',
    MUSTER_IP_SEED: 'off',
    DATABASE_URL: database_url,
  }
  const output = outputOf(cluster.run(name, [process.execPath, ROLE_PROGRAM], { env }))
  const url = `http://${address}:8080`
  await until(`the platform ${name}`, () =>
    fetch(url, { redirect: 'manual' }).then(
      () => true,
      () => false,
    ),
  ).catch((error: unknown) => {
    throw new Error(output(), { cause: error })
  })
  // It is written a moment after the api listens.
  const token_file = join((keys_of ?? { data_dir }).data_dir, 'admin-token')
  const token = await until('the token', () => existsSync(token_file) && readFileSync(token_file, 'utf8').trim())
  return { data_dir, client: createClient({ url, token }) }
}

function create({ client }: Platform, display_name: string): Promise<unknown> {
  return client.call(createGroup, { body: { display_name }, signal: callSignal() })
}

async function namesOf({ client }: Platform): Promise<string[]> {
  const { groups } = await client.call(listGroups, { signal: callSignal() })
  return groups.map(({ display_name }) => display_name).toSorted()
}
