// What the box of a lobby costs: its start against that of a bare process, requests to a network of its own against
// loopback, and the memory and processor time of many boxes at rest. Needs root, bubblewrap, iproute2 and nftables.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRange } from '@musterhost/server/config/lobby-network'
import { newId } from '@musterhost/server/ids'
import { createLog } from '@musterhost/server/observe/log'
import type { Driver, Handle } from '@musterhost/server/runner/drivers/driver'
import { openProcessDriver } from '@musterhost/server/runner/drivers/process/process'
import { type BenchLobby, insertLobby } from '../edge/lobby.ts'
import { datagramsPerSecond, requestsPerSecond } from '../edge/rounds.ts'
import { byTurns, ratio, report } from '../edge/turns.ts'
import { startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'

const STARTS = 24
const BOXES = 200
const REST_MS = 5_000
const START_RATIO_MAX = 1.2
const START_MORE_MS_MAX = 25
const TRAFFIC_RATIO_MIN = 0.9
const WAIT_MS_MAX = 30_000
const POLL_MS = 1
/** The kernel reports times in hundredths of a second. */
const TICK_MS = 10
const HTTP_PORT = 20_000
const UDP_PORT = 20_001
const TIER = { cpu_cores: 2, memory_bytes: 2 ** 29, pids_max: 64, tmp_bytes: 2 ** 20, disk_bytes: 2 ** 34 }
const RATE = 10_000_000_000
const SERVER = `
  import { createServer } from 'node:http'
  import { createSocket } from 'node:dgram'
  const [http, udp] = process.argv.slice(2).map(Number)
  const socket = createSocket('udp4', (message, { port, address }) => socket.send(message, port, address))
  socket.bind(udp, '127.0.0.1', () =>
    createServer((_, response) => response.end('ok')).listen(http, '127.0.0.1', () => console.log('listening')))`

type Kind = 'box' | 'bare'
type Started = { handle: Handle; ms: number; host: string }
type Machine = { driver: Driver; folder: string; build_folder: string }

export async function run(): Promise<void> {
  const box = await open('required')
  const bare = await open('off')
  const machines: Record<Kind, Machine> = { box, bare }
  try {
    await measureStarts(machines)
    await measureTraffic(machines)
    await measureRest(box)
  } finally {
    for (const { driver, folder } of [box, bare]) {
      for (const handle of await driver.list()) await driver.stop(handle, 0).then(() => driver.exit(handle))
      await driver.sweep()
      await driver.close({ logger: 'end' })
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function open(sandbox: 'required' | 'off'): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  chmodSync(folder, 0o711)
  const driver = await openProcessDriver({
    data_dir: folder,
    sandbox,
    log: createLog({ who: 'bench', level: 'silent' }),
    network: { range: parseRange('198.18.0.0/15')!, platform: { address: '127.0.0.1', port: 1 } },
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  })
  const build_folder = join(folder, 'builds', 'bench')
  mkdirSync(build_folder, { recursive: true })
  writeFileSync(join(build_folder, 'server.mjs'), SERVER)
  return { driver, folder, build_folder }
}

async function start({ driver, build_folder }: Machine, args: string[]): Promise<Started> {
  const began_ms = performance.now()
  const network = await driver.takeNetwork({ has_internet: true, bytes_per_second: RATE })
  const started = await driver.start({ lobby_id: newId(Date.now()), build_folder, args, env: {}, tier: TIER, network })
  if ('refused' in started) throw new Error(started.message)
  return { handle: started.handle, ms: performance.now() - began_ms, host: network?.address ?? '127.0.0.1' }
}

/** Until its server listens. */
async function startServer(machine: Machine, offset = 0): Promise<Started> {
  const began_ms = performance.now()
  const ports = [HTTP_PORT + offset, UDP_PORT + offset].map(String)
  const started = await start(machine, ['node', 'server.mjs', ...ports])
  for (;;) {
    const lines = await machine.driver.logs(started.handle.lobby_id, 'stdout', 10)
    const ms = performance.now() - began_ms
    if (lines.length > 0) return { ...started, ms }
    if (ms > WAIT_MS_MAX) throw new Error('The server does not listen.')
    await sleep(POLL_MS)
  }
}

async function end({ driver }: Machine, { handle }: Started): Promise<void> {
  await driver.stop(handle, 0)
  await driver.exit(handle)
}

async function measureStarts(machines: Record<Kind, Machine>): Promise<void> {
  const times: Record<Kind, number[]> = { box: [], bare: [] }
  for (let count = 0; count < STARTS; count++) {
    for (const kind of ['box', 'bare'] as const) {
      const started = await startServer(machines[kind])
      times[kind].push(started.ms)
      await end(machines[kind], started)
      // The pools are refilled.
      await sleep(600)
    }
  }
  const [box, bare] = [median(times.box), median(times.bare)]
  console.log(`start until it listens: in a box ${box.toFixed(1)} ms, bare ${bare.toFixed(1)} ms`)
  verdict('start in a box against bare', box / bare, START_RATIO_MAX, 'at most')
  verdict('milliseconds more', box - bare, START_MORE_MS_MAX, 'at most')
}

/** To a server in a box and to one on loopback: through the edge, as players come, and without it. */
async function measureTraffic(machines: Record<Kind, Machine>): Promise<void> {
  const servers = { box: await startServer(machines.box, 10), bare: await startServer(machines.bare, 20) }
  const ports = {
    box: { tcp: HTTP_PORT + 10, udp: UDP_PORT + 10, host: servers.box.host },
    bare: { tcp: HTTP_PORT + 20, udp: UDP_PORT + 20, host: servers.bare.host },
  }
  const platform = await startPlatform(['edge'])
  try {
    const lobbies = { box: await insertLobby(platform, ports.box), bare: await insertLobby(platform, ports.bare, 1) }
    const { edge_http_port, edge_ports } = platform.config
    const at = `http://localhost:${edge_http_port}/`
    const hostOf = ({ lobby_id }: BenchLobby): string => `${lobby_id}-game.lobby.local.localhost`
    const edge_host = edge_ports.host ?? '127.0.0.1'
    await compare('HTTP through the edge', TRAFFIC_RATIO_MIN, {
      box: () => requestsPerSecond(at, hostOf(lobbies.box)),
      bare: () => requestsPerSecond(at, hostOf(lobbies.bare)),
    })
    await compare('UDP through the edge', TRAFFIC_RATIO_MIN, {
      box: () => datagramsPerSecond(lobbies.box.udp, edge_host),
      bare: () => datagramsPerSecond(lobbies.bare.udp, edge_host),
    })
    await compare('HTTP without the edge', null, {
      box: () => requestsPerSecond(`http://${ports.box.host}:${ports.box.tcp}/`),
      bare: () => requestsPerSecond(`http://${ports.bare.host}:${ports.bare.tcp}/`),
    })
    await compare('UDP without the edge', null, {
      box: () => datagramsPerSecond(ports.box.udp, ports.box.host),
      bare: () => datagramsPerSecond(ports.bare.udp, ports.bare.host),
    })
  } finally {
    await platform.stop()
    for (const kind of ['box', 'bare'] as const) await end(machines[kind], servers[kind])
  }
}

/** `goal`: null where the figure only shows what the edge hides. */
async function compare(what: string, goal: number | null, ways: Record<Kind, () => Promise<number>>): Promise<void> {
  const results = await byTurns(ways)
  report(`${what}, a second`, results)
  const value = ratio(results, 'box', 'bare')
  if (goal === null) console.log(`  to a box against loopback: ${value.toFixed(2)}`)
  else verdict('to a box against loopback', value, goal, 'at least')
}

async function measureRest(machine: Machine): Promise<void> {
  const before_kb = availableMemory()
  for (let count = 0; count < BOXES; count++) await start(machine, ['/usr/bin/sleep', '3600'])
  await sleep(2_000)
  const used_mb = (before_kb - availableMemory()) / 1024
  const before_ms = usedMs()
  await sleep(REST_MS)
  const used_ms = usedMs() - before_ms
  console.log(`${BOXES} boxes of sleep: ${(used_mb / BOXES).toFixed(2)} MB each`)
  console.log(`  the runner at rest: ${((100 * used_ms) / REST_MS).toFixed(2)} % of a core`)
}

/** Processor time of this process, which is the runner here. */
function usedMs(): number {
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

function availableMemory(): number {
  return Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'latin1'))?.[1])
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1]!
}
