// The runner's part of the trace of a request that started a lobby: its row, its process, the time until its server
// listens, and the time until the matchmaker has recorded that it is ready. Whether it listens is read from the kernel's
// list of sockets, once for all traced starts: a probing connection would reach the game server. No start waits for this.
import { readFileSync } from 'node:fs'
import type { Context } from '../context.ts'
import { phase, type Ray } from '../observe/ray.ts'
import type { Run } from './launch.ts'
import type { WantedLobby } from './rows.ts'
import { readListeners } from './sockets.ts'

/** Starts traced at once. Further ones are not traced after their process has started. */
const TRACED_MAX = 256
const CHECK_EVERY_MS = 10
/** Checks for the listening socket of one start: half a minute of them. */
const CHECKS_MAX = 3_000
/** Counts of sockets. They cost microseconds to read; the list of sockets costs milliseconds. */
const COUNTS = ['/proc/net/sockstat', '/proc/net/sockstat6']
/** Bounds the share of the runner's time: a list that took 1 ms to read is not read again for 10 ms. */
const PAUSE_PER_READ = 10

/** `checks_left`: 0 when its socket is no longer looked for. */
type TracedStart = {
  ray: Ray
  numbers: readonly number[]
  /** A process in the lobby's own network; null: it shares that of the machine. */
  pid: number | null
  listens: boolean
  checks_left: number
}

export class StartTraces {
  readonly #recorder: Context['recorder']
  /** By lobby id. */
  readonly #starts = new Map<string, TracedStart>()
  /** Lobbies that were ready before `started` was called for them. */
  readonly #early = new Set<string>()
  #timer: NodeJS.Timeout | null = null
  #counts_before = ''
  #read_again_ms = 0

  constructor({ recorder }: Pick<Context, 'recorder'>) {
    this.#recorder = recorder
  }

  /** Null: no request started the lobby, or traces are not kept. */
  open({ ray_id, namespace_id }: Pick<WantedLobby, 'ray_id' | 'namespace_id'>): Ray | null {
    if (ray_id === null) return null
    const ray = this.#recorder.open('runner', ray_id, performance.now(), 'row')
    if (ray === null) return null
    const owner = { kind: 'namespace' as const, id: namespace_id }
    return Object.assign(ray, { operation: 'lobby.start', owner, is_wanted: true })
  }

  /** The lobby's process has started; `run` is null when it did not. */
  started(ray: Ray | null, run: Run | null): void {
    if (ray === null) return
    if (run === null) {
      // Without a row of this runner, another runner starts the lobby and records its trace.
      if (ray.labels.length > 1) this.#recorder.end(ray, 'not_started')
      return
    }
    if (this.#starts.size >= TRACED_MAX) return
    const { lobby_id, network } = run.handle
    const pid = network === null ? null : run.handle.pid
    const ports = Object.values(run.ports).filter(({ protocol }) => protocol !== 'udp')
    phase(ray, 'listen')
    const numbers = ports.map(({ port }) => port)
    this.#starts.set(lobby_id, { ray, numbers, pid, listens: false, checks_left: CHECKS_MAX })
    // It may listen already, so the list is read whatever the counts say.
    this.#counts_before = ''
    if (this.#early.has(lobby_id)) this.#finish(lobby_id, null)
    else if (ports.length > 0) this.#readSoon()
  }

  /** The matchmaker has recorded that the lobby is ready. */
  ready(lobby_id: string): void {
    if (this.#starts.has(lobby_id)) this.#finish(lobby_id, null)
    else if (this.#early.add(lobby_id).size > TRACED_MAX) this.#early.delete(this.#early.values().next().value!)
  }

  /** The run has ended. */
  ended(lobby_id: string, reason: string): void {
    this.#finish(lobby_id, reason)
  }

  close(): void {
    this.#starts.clear()
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #finish(lobby_id: string, code: string | null): void {
    const start = this.#starts.get(lobby_id)
    this.#early.delete(lobby_id)
    if (start === undefined) return
    this.#starts.delete(lobby_id)
    // The server listened between two checks, and then called ready.
    if (code === null && !start.listens) phase(start.ray, 'ready')
    this.#recorder.end(start.ray, code)
  }

  #readSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#check()
        .catch(() => this.#stopLooking())
        .finally(() => {
          this.#timer = null
          if (this.#unseen().length > 0) this.#readSoon()
        })
    }, CHECK_EVERY_MS)
  }

  #unseen(): TracedStart[] {
    return [...this.#starts.values()].filter(({ listens, checks_left }) => !listens && checks_left > 0)
  }

  /** Other systems than Linux have no such list. */
  #stopLooking(): void {
    for (const start of this.#starts.values()) start.checks_left = 0
  }

  async #check(): Promise<void> {
    for (const start of this.#unseen()) start.checks_left--
    const began_ms = performance.now()
    if (began_ms < this.#read_again_ms) return
    await this.#readMachine()
    // Their lists are short, and no count of the machine includes them.
    for (const start of this.#unseen()) {
      if (start.pid !== null) markListening([start], await readListeners('tcp', start.numbers, start.pid))
    }
    this.#read_again_ms = performance.now() + (performance.now() - began_ms) * PAUSE_PER_READ
  }

  async #readMachine(): Promise<void> {
    const counts = COUNTS.map(readCount).join(' ')
    if (counts === this.#counts_before) return
    this.#counts_before = counts
    const numbers = this.#unseen().flatMap((start) => (start.pid === null ? start.numbers : []))
    const listeners = await readListeners('tcp', numbers)
    markListening(
      this.#unseen().filter(({ pid }) => pid === null),
      listeners,
    )
  }
}

function markListening(starts: readonly TracedStart[], listeners: ReadonlyMap<number, unknown>): void {
  for (const start of starts) {
    start.listens = start.numbers.some((number) => listeners.has(number))
    if (start.listens) phase(start.ray, 'ready')
  }
}

/** The number of TCP sockets in use, listening ones included. */
function readCount(path: string): string {
  return /^TCP6?: inuse \d+/m.exec(readFileSync(path, 'latin1'))?.[0] ?? ''
}
