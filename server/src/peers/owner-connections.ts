// Connections to the matchmakers that have other shards, and which of them cannot be reached. A network that drops packets
// refuses nothing, so each process from which a response is due is probed after 100 ms, and then twice a second. After two
// failures its connections are closed, and requests for it go through another process until a probe succeeds.
import type { Agent } from 'node:http'
import { canConnect, targetOf } from '../outbound/tcp-probe.ts'
import type { ProcessTls } from '../process-tls/process-tls.ts'

/** Idle connections to one process. */
const FREE_SOCKETS_MAX = 256
const PROBE_EVERY_MS = 500
const PROBE_MS_MAX = 750
/** Milliseconds without a response until the first probe of a process to which no request was under way before. */
const FIRST_PROBE_MS = 100
/** Probes in a row that fail before a process counts as unreachable. */
const PROBES_MAX = 2
/** Probes without a request until the process is forgotten. */
const UNASKED_MAX = 120

/**
 * `asked`: requests under way. `failures`: probes in a row that failed. `unasked`: probes since the last request. `first`: runs
 * until the first probe after a time without requests.
 */
type Process = {
  agent: Agent
  asked: number
  failures: number
  unasked: number
  timer: NodeJS.Timeout
  first: NodeJS.Timeout | null
}

export class OwnerConnections {
  readonly #tls: ProcessTls
  readonly #processes = new Map<string, Process>()

  constructor(tls: ProcessTls) {
    this.#tls = tls
  }

  /** Whether it could not be reached when it was asked or probed last. */
  isAway(address: string): boolean {
    return (this.#processes.get(address)?.failures ?? 0) >= PROBES_MAX
  }

  /** A request to the process begins. `end` is to be called when it has ended. */
  async begin(address: string): Promise<{ agent: Agent; end: () => void }> {
    await this.#tls.open()
    const process = this.#processOf(address)
    process.asked++
    process.unasked = 0
    if (process.asked === 1 && process.failures === 0) {
      process.first = setTimeout(() => void this.#probe(address, process), FIRST_PROBE_MS)
      // The second probe follows in one period, and not at once.
      process.timer.refresh()
    }
    const end = (): void => {
      process.asked--
      if (process.asked === 0 && process.first !== null) clearTimeout(process.first)
    }
    return { agent: process.agent, end }
  }

  /** No connection could be made. */
  failed(address: string): void {
    this.#onFailure(this.#processOf(address), PROBES_MAX)
  }

  close(): void {
    for (const [address, process] of this.#processes) this.#forget(address, process)
  }

  #processOf(address: string): Process {
    const known = this.#processes.get(address)
    if (known !== undefined) return known
    const timer = setInterval(() => void this.#probe(address, process), PROBE_EVERY_MS)
    const counts = { asked: 0, failures: 0, unasked: 0 }
    const process: Process = { agent: this.#newAgent(), ...counts, timer, first: null }
    this.#processes.set(address, process)
    return process
  }

  async #probe(address: string, process: Process): Promise<void> {
    if (process.asked === 0 && ++process.unasked > UNASKED_MAX) this.#forget(address, process)
    else if (process.asked === 0 && process.failures === 0) return
    else if (await canConnect(targetOf(address), PROBE_MS_MAX)) process.failures = 0
    else this.#onFailure(process, 1)
  }

  #onFailure(process: Process, count: number): void {
    const was_away = process.failures >= PROBES_MAX
    process.failures += count
    if (was_away || process.failures < PROBES_MAX) return
    process.agent.destroy()
    process.agent = this.#newAgent()
  }

  #forget(address: string, { timer, first, agent }: Process): void {
    clearInterval(timer)
    if (first !== null) clearTimeout(first)
    agent.destroy()
    this.#processes.delete(address)
  }

  #newAgent(): Agent {
    return this.#tls.agent({ maxFreeSockets: FREE_SOCKETS_MAX })
  }
}
