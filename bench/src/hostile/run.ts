// What a neighbour of a hostile program notices: the p99 of round trips to a server in a box. While each hostile program runs in
// another box, it is compared with quiet rounds of the same run. Needs what `boxes` needs.
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRange } from '@musterhost/server/config/lobby-network'
import { newId } from '@musterhost/server/ids'
import { createLog } from '@musterhost/server/observe/log'
import type { Driver, Handle, RunSpec, Tier } from '@musterhost/server/runner/drivers/driver'
import { openProcessDriver } from '@musterhost/server/runner/drivers/process/process'
import { median, quantile } from '../load.ts'

const PROGRAMS = new URL('../../../server/test/runner/hostile/', import.meta.url)
const ROUNDS = 3
const ROUND_MS = 3_000
/** The rate of a game with 60 messages a second for each of eight players. */
const TRIP_EVERY_MS = 2
const RATIO_MAX = 2
const WAIT_MS_MAX = 10_000
const POLL_MS = 5
/** Until the pools are refilled and the processes of the last program are gone. */
const REST_MS = 700
const PORT = 20_000
/** A quarter of the machine, as a game server beside three others. */
const TIER: Tier = { cpu_cores: 0.5, memory_bytes: 2 ** 28, pids_max: 256, tmp_bytes: 2 ** 26, disk_bytes: 2 ** 30 }
const SERVER = `
  import { createServer } from 'node:net'
  createServer({ noDelay: true }, (socket) => socket.pipe(socket)).listen(${PORT}, '127.0.0.1', () => console.log('listening'))`

export async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  chmodSync(folder, 0o711)
  const driver = await openProcessDriver({
    data_dir: folder,
    sandbox: 'required',
    log: createLog({ who: 'bench', level: 'silent' }),
    network: { range: parseRange('198.18.0.0/15')!, platform: { address: '127.0.0.1', port: 1 } },
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  })
  try {
    await measure(driver, folder)
  } finally {
    for (const handle of await driver.list()) await driver.stop(handle, 0).then(() => driver.exit(handle))
    await driver.sweep()
    await driver.close({ logger: 'end' })
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(driver: Driver, folder: string): Promise<void> {
  const neighbour = await start(driver, folder, SERVER, ['node', 'server.mjs'])
  await until(async () => (await driver.logs(neighbour.lobby_id, 'stdout', 1)).length > 0)
  const host = neighbour.network!.address
  const names = readdirSync(PROGRAMS).filter((name) => name.endsWith('.py'))
  const quiet: number[] = []
  const loud: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  await p99Of(host)
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      quiet.push(await p99Of(host))
      const program = readFileSync(new URL(name, PROGRAMS), 'utf8')
      const env = { SECRET_WORD: 'none', NEIGHBOUR: host }
      const hostile = await start(driver, folder, program, ['/usr/bin/python3', '-u', '/build/server.mjs'], env)
      loud[name]!.push(await p99Of(host))
      await driver.stop(hostile, 0)
      await until(async () => (await driver.exit(hostile)) !== null)
      await driver.sweep()
      await sleep(REST_MS)
    }
  }
  const base_ms = median(quiet)
  console.log(`\n  p99 of a round trip, quiet: ${base_ms.toFixed(3)} ms (median of ${quiet.length} rounds)`)
  for (const name of names) {
    const ms = median(loud[name]!)
    const is_met = ms <= RATIO_MAX * base_ms
    const goal = is_met ? 'met' : 'MISSED'
    console.log(
      `  beside ${name}: ${ms.toFixed(3)} ms, ${(ms / base_ms).toFixed(2)} times (goal at most ${RATIO_MAX}: ${goal})`,
    )
  }
}

async function start(
  driver: Driver,
  folder: string,
  program: string,
  args: RunSpec['args'],
  env: Record<string, string> = {},
): Promise<Handle> {
  const lobby_id = newId(Date.now())
  const build_folder = join(folder, 'builds', lobby_id)
  mkdirSync(build_folder, { recursive: true })
  writeFileSync(join(build_folder, 'server.mjs'), program)
  const network = await driver.takeNetwork({ has_internet: true, bytes_per_second: 1e9 })
  const own = { SERVICES: network!.services, ADDRESS: network!.address }
  const started = await driver.start({ lobby_id, build_folder, args, env: { ...env, ...own }, tier: TIER, network })
  if ('refused' in started) throw new Error(started.message)
  return started.handle
}

/** The p99 of round trips over one connection. Each counts from the time when it was sent, and none waits for another. */
async function p99Of(host: string): Promise<number> {
  const socket = connect({ host, port: PORT, noDelay: true })
  await once(socket, 'connect')
  const trips: number[] = []
  const due: number[] = []
  socket.on('data', (chunk: Buffer) => {
    const now_ms = performance.now()
    for (let count = 0; count < chunk.length; count++) trips.push(now_ms - due.shift()!)
  })
  const begin_ms = performance.now()
  for (let at_ms = begin_ms; at_ms < begin_ms + ROUND_MS; at_ms += TRIP_EVERY_MS) {
    while (performance.now() < at_ms) await sleep(1)
    due.push(performance.now())
    socket.write('x')
  }
  await until(async () => due.length === 0)
  socket.destroy()
  return quantile(trips, 0.99)
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const end_ms = performance.now() + WAIT_MS_MAX
  while (!(await isDone())) {
    if (performance.now() > end_ms) throw new Error('A lobby does not do what it should.')
    await sleep(POLL_MS)
  }
}
