// Measures two edge processes of a machine against one: processor time of all edge processes for each request. Load generator,
// edges and backend share the machine's cores, so requests a second say less. Where a process is the limit, n processes serve
// n times the requests, divided by this ratio.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { insertLobby } from '../edge/lobby.ts'
import { HTTP_ROUND_S, requestsPerSecond } from '../edge/rounds.ts'
import { byTurns, ratio, report } from '../edge/turns.ts'
import { median } from '../load.ts'
import { startFurtherEdge, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'

const COUNT = 2
const CPU_GOAL = 1.1
const THROUGHPUT_GOAL = 1.7
/** The kernel reports times to programs in hundredths of a second. */
const TICK_US = 10_000
const REST_MS = 20_000

/** `pids`: of its edge processes. */
type Edges = { pids: readonly number[]; http_port: number; host: string }

export async function run(): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const backend = await startBackend()
  opened.defer(() => backend.stop())
  const one = await startEdges(opened, backend, 1)
  const several = await startEdges(opened, backend, COUNT)
  for (const [what, hostOf] of [
    ['lobby', ({ host }: Edges) => host],
    // As the api, which has a pool of requests for each client.
    ['api', () => 'localhost'],
  ] as const) {
    const shares: number[] = []
    const measured = await byTurns({
      one: () => cpuPerRequest(one, hostOf(one)),
      two: () => cpuPerRequest(several, hostOf(several), shares),
    })
    report(`requests to the ${what}, microseconds of the edges for each`, measured)
    verdict(`${what}: two processes / one`, ratio(measured, 'two', 'one'), CPU_GOAL, 'at most')
    verdict(
      `${what}: requests a second where a process is the limit`,
      COUNT / ratio(measured, 'two', 'one'),
      THROUGHPUT_GOAL,
      'at least',
    )
    console.log(`  the second process had ${(median(shares) * 100).toFixed(0)} % of the time`)
  }
  for (const [what, edges] of [
    ['one', one],
    ['two', several],
  ] as const) {
    const before_us = sumOf(edges.pids.map(cpuUs))
    await new Promise((resolve) => setTimeout(resolve, REST_MS))
    const ms = (sumOf(edges.pids.map(cpuUs)) - before_us) / REST_MS
    console.log(`  at rest, ${what}: ${ms.toFixed(2)} ms of processor time a second`)
  }
}

async function startEdges(
  opened: AsyncDisposableStack,
  backend: { tcp: number; udp: number },
  count: number,
): Promise<Edges> {
  const settings = { MUSTER_PROCESS: `0/${count}`, MUSTER_API_PORT: String(backend.tcp) }
  const platform = await startPlatform(['edge'], settings)
  opened.defer(() => platform.stop())
  const pids = [platform.processes.edge!.pid!]
  for (let number = 1; number < count; number++) {
    const further = await startFurtherEdge(platform, { number, count })
    opened.defer(() => further.stop())
    pids.push(further.pid)
  }
  const { lobby_id } = await insertLobby(platform, backend)
  return { pids, http_port: platform.config.edge_http_port, host: `${lobby_id}-game.lobby.local.localhost` }
}

/** In microseconds. `shares` gets the share of the second process. */
async function cpuPerRequest({ pids, http_port }: Edges, host: string, shares: number[] = []): Promise<number> {
  const before = pids.map(cpuUs)
  const requests = HTTP_ROUND_S * (await requestsPerSecond(`http://localhost:${http_port}/`, host))
  const used = pids.map((pid, index) => cpuUs(pid) - before[index]!)
  shares.push((used[1] ?? 0) / sumOf(used))
  return sumOf(used) / requests
}

function cpuUs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

async function startBackend(): Promise<{ tcp: number; udp: number; stop: () => void }> {
  const program = fileURLToPath(new URL('../edge/backend.ts', import.meta.url))
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const [tcp, udp] = String(line).trim().split(' ').map(Number) as [number, number]
  return { tcp, udp, stop: () => child.stdin.end() }
}
