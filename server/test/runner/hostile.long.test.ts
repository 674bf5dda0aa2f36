// Hostile programs, each in a lobby beside a neighbour. Each is contained, its exit names what it did, the neighbour
// responds throughout, and the machine is unchanged afterwards. The folder hostile/ has the programs.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Exit, ExitReason, Handle, Tier } from '../../src/runner/drivers/driver.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { importPythonImage, PYTHON_IMAGE } from './base-image.ts'
import { needsOf, sharedEngine } from './driver-fixture.ts'
import { machineFiles } from './machine-files.ts'
import { type Host, makeWorld, NETWORK_NEEDS, traces, type World } from './network-world.ts'

const FOLDER = new URL('./hostile/', import.meta.url)
/** In the command lines of processes that a hostile program starts. */
const MARK = 'hostile-mark'
const SECRET = 'a-secret-of-the-platform'
const NEIGHBOUR = `
  import { createServer } from 'node:net'
  createServer((socket) => socket.pipe(socket)).listen(20000, '127.0.0.1', () => console.log('listening'))`

/** Of a stream that writes 25 MB in a moment. */
const LOG_BYTES_MAX = 2 * 1024 ** 2

/**
 * `line`: a line of its log before it ends or is stopped. `reason`: null when the test stops it. `log_bytes_max`: of the files
 * of each stream.
 */
type Case = {
  name: string
  line: RegExp | null
  reason: ExitReason | null
  tier?: Partial<Tier>
  log_bytes_max?: number
}

const CASES: readonly Case[] = [
  { name: 'system-calls.py', line: /^passed \[\]$/, reason: 'exit' },
  { name: 'secrets.py', line: /^found \[\]$/, reason: 'exit' },
  { name: 'writes.py', line: /^written \[\]$/, reason: 'exit' },
  { name: 'scratch.py', line: /^full \['\/tmp', '\/scratch', '\/dev\/shm'\]$/, reason: 'exit' },
  { name: 'disk.py', line: /^failed \[(27, )?28\]$/, reason: 'disk' },
  { name: 'links.py', line: /^reached \[\]$/, reason: 'exit' },
  { name: 'ports.py', line: /^reached True$/, reason: 'exit' },
  { name: 'log-flood.py', line: /lines? .*dropped|dropped .*lines?/, reason: 'exit', log_bytes_max: LOG_BYTES_MAX },
  { name: 'forks.py', line: /^forked \d+$/, reason: 'pids' },
  { name: 'memory.py', line: null, reason: 'oom', tier: { memory_bytes: 64 * 1024 ** 2 } },
  { name: 'inodes.py', line: null, reason: 'oom', tier: { memory_bytes: 64 * 1024 ** 2 } },
  { name: 'daemons.py', line: /^started$/, reason: 'exit' },
  { name: 'kill-all.py', line: /^killed$/, reason: 'exit' },
  { name: 'spin.py', line: /^spinning$/, reason: null, tier: { cpu_cores: 0.5 } },
]

/** What differs in a container (docs/containers.md). */
const IN_CONTAINERS: Readonly<Record<string, Partial<Case>>> = {
  // Its writable folder is in memory.
  'disk.py': { reason: 'exit' },
}

for (const variant of ['required', 'docker'] as const) {
  const name = variant === 'docker' ? 'containers' : 'processes'
  test(`hostile programs are contained in ${name}, and a neighbour is undisturbed`, async (t) => {
    const missing = lacking(...needsOf(variant), ...NETWORK_NEEDS)
    if (missing !== null) return t.skip(missing)
    process.env.MUSTER_TEST_SECRET = SECRET
    t.after(() => delete process.env.MUSTER_TEST_SECRET)
    const engine = variant === 'docker' ? await engineWithPython(t) : null
    const world = await makeWorld(t)
    const [before, files_before] = [traces(world), machineFiles()]
    const host = await world.host(engine === null ? {} : { engine, image: PYTHON_IMAGE })
    const neighbour = await host.call<Handle>({ start: { program: NEIGHBOUR } })
    await host.call({ line: neighbour.lobby_id, pattern: '^listening$' })
    for (const one of CASES) {
      await t.test(one.name, async () => {
        await contain(world, host, neighbour, variant === 'docker' ? { ...one, ...IN_CONTAINERS[one.name] } : one)
        await requireEcho(host, neighbour)
        await until('its processes are gone', () => processesWith(MARK).length === 0)
      })
    }
    await host.call({ stop: neighbour.lobby_id })
    await host.call({ exit: neighbour.lobby_id })
    await host.call({ sweep: true })
    await host.call({ close: 'end' })
    // The engine removes its control groups in its own time.
    await until('nothing is left', () => isDeepStrictEqual(traces(world), before)).catch(() => undefined)
    assert.deepEqual(traces(world), before)
    assert.deepEqual(machineFiles(), files_before)
  })
}

async function engineWithPython(t: TestContext): Promise<string> {
  const engine = await sharedEngine('docker')
  const folder = mkdtempSync(join(tmpdir(), 'muster-python-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  await importPythonImage(engine, join(folder, 'image'))
  return engine.socket
}

async function contain(
  { data_dir }: World,
  host: Host,
  neighbour: Handle,
  { name, line, reason, tier = {}, log_bytes_max }: Case,
): Promise<void> {
  const { lobby_id } = await host.call<Handle>({
    start: {
      program: readFileSync(new URL(name, FOLDER), 'utf8'),
      args: ['/usr/bin/python3', '-u', '/build/server.mjs', MARK],
      env: { SECRET_WORD: SECRET.split('-').join(' '), NEIGHBOUR: neighbour.network!.address },
      tier,
    },
  })
  if (reason === null) {
    await host.call({ line: lobby_id, pattern: line!.source })
    await host.call({ stop: lobby_id })
  }
  const exit = await host.call<Exit>({ exit: lobby_id })
  const { lines } = await host.call<{ lines: string[] }>({ log: lobby_id })
  assert.ok(line === null || lines.some((text) => line.test(text)), `${name} printed ${JSON.stringify(lines)}`)
  assert.equal(exit.reason, reason ?? 'signal', JSON.stringify({ exit, lines }))
  for (const stream of log_bytes_max === undefined ? [] : (['stdout', 'stderr'] as const)) {
    const bytes = bytesOf(join(data_dir, 'lobbies', lobby_id), stream)
    assert.ok(bytes > 0 && bytes <= log_bytes_max!, `${stream} has ${bytes} bytes`)
  }
}

async function requireEcho(host: Host, { network }: Handle): Promise<void> {
  const { text } = await host.call<{ text: string }>({ connect: network!.address, port: 20_000, send: 'alive' })
  assert.equal(text, 'alive')
}

function bytesOf(folder: string, stream: 'stdout' | 'stderr'): number {
  const files = readdirSync(folder).filter((name) => name.startsWith(`${stream}.`))
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

function processesWith(word: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0').includes(word)
    } catch {
      // It has ended.
      return false
    }
  })
}
