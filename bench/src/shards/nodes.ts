// One platform of this bench: with its own matchmaker, and further ones. Reads what its processes use and what they did.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchPlatform, type FurtherMatchmaker, freePorts, startMatchmaker, startPlatform } from '../platform.ts'

const SHARD_COUNT = 64
const LOOK_EVERY_MS = 100
/** Linux counts processor time in hundredths of a second. */
const US_PER_TICK = 10_000

export const PARTS = ['matchmakers', 'edge', 'PostgreSQL'] as const
/** Processor time in microseconds. */
export type Cpu = Record<(typeof PARTS)[number], number>
/** `forwarded`: requests that a matchmaker sent on. `row_count`: rows of the journal. */
export type Sample = { cpu: Cpu; forwarded: number; row_count: number; at_ms: number }

export class Nodes {
  readonly platform: BenchPlatform
  readonly count: number
  readonly #further: FurtherMatchmaker[] = []

  private constructor(platform: BenchPlatform, count: number) {
    this.platform = platform
    this.count = count
  }

  /** Resolves when `count` matchmakers have even shares. */
  static async start(count: number): Promise<Nodes> {
    const [metrics_port] = await freePorts(1)
    const settings = { MUSTER_METRICS_PORT: String(metrics_port) }
    const nodes = new Nodes(await startPlatform(['api', 'matchmaker', 'edge'], settings), count)
    while (nodes.#further.length < count - 1) {
      nodes.#further.push(await startMatchmaker(nodes.platform, nodes.#further.length + 2))
    }
    while (!(await nodes.#isEven())) await delay(LOOK_EVERY_MS)
    return nodes
  }

  async stop(): Promise<void> {
    for (const one of this.#further) await one.stop()
    await this.platform.stop()
  }

  async sample(): Promise<Sample> {
    const { processes, config, database } = this.platform
    const { rows } = await database.pool.query<{ row_count: number }>(
      'select coalesce(sum(last_seq), 0)::float8 as row_count from (select max(seq) as last_seq from journal group by shard) as shards',
    )
    const ports = [config.metrics!.port, ...this.#further.map(({ metrics_port }) => metrics_port)]
    const forwarded = sum(await Promise.all(ports.map(forwardedBy)))
    const pids = [processes.matchmaker!.pid!, ...this.#further.map(({ pid }) => pid)]
    const cpu = {
      matchmakers: sum(pids.map(cpuOf)),
      edge: cpuOf(processes.edge!.pid!),
      PostgreSQL: this.#postgresCpu(),
    }
    return { cpu, forwarded, row_count: rows[0]!.row_count, at_ms: performance.now() }
  }

  async #isEven(): Promise<boolean> {
    const { rows } = await this.platform.database.pool.query<{ shard_count: number }>(
      `select count(*)::integer as shard_count from shard_leases where writer is not null and is_served
        group by writer order by shard_count`,
    )
    const counts = rows.map(({ shard_count }) => shard_count)
    return counts.length === this.count && sum(counts) === SHARD_COUNT && counts.at(-1)! - counts[0]! <= 1
  }

  #postgresCpu(): number {
    const file = join(this.platform.config.data_dir, 'postgres', 'postmaster.pid')
    const postmaster = Number(readFileSync(file, 'utf8').split('\n', 1)[0])
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ')
    return sum([postmaster, ...children.map(Number)].map(cpuOf))
  }
}

/** The processor time of a process, with the children that it has waited for. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return sum(fields.slice(11, 15).map(Number)) * US_PER_TICK
}

async function forwardedBy(metrics_port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${metrics_port}/metrics`)
  const value = /^muster_forwarded_requests_total (\d+)/m.exec(await response.text())?.[1]
  if (value === undefined) throw new Error('a matchmaker does not report its forwarded requests')
  return Number(value)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
