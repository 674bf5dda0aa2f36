// Bots that find, connect and leave. A pattern says when they come and how long they stay:
//
//   idle    they arrive evenly, and all stay until the end
//   steady  they arrive evenly; each stays for a while, leaves and comes again
//   burst   all arrive at once, stay, leave at once, and come again
//
// A refusal is counted by its code. A bot that was refused tries again after a pause, until the end.
import { setTimeout as delay } from 'node:timers/promises'
import { type BotConnection, type BotOptions, play } from './bot.ts'
import { type Limit, limitOf } from './limits.ts'
import type { Pattern } from './patterns.ts'

/** Idle and steady bots have all arrived after this part of the duration. */
const ARRIVAL_SHARE = 0.4
/** A steady bot stays for this part of the duration, a burst for this part of it. */
const STAY_SHARE = 0.3
/** Pause after a refusal without Retry-After. */
const PAUSE_MS = 1_000
/** Pause after a refusal, whatever Retry-After says. */
const PAUSE_MS_MAX = 30_000
/** Measured times that are kept; of more, the last ones. */
const TIMES_MAX = 100_000

export type SwarmOptions = BotOptions & {
  bots: number
  pattern: Pattern
  duration_ms: number
  signal: AbortSignal
  /** Called when a bot has connected, left, or was refused. */
  onChange?: (now: { players: number; refused: number }) => void
}

export type SwarmReport = {
  bots: number
  pattern: Pattern
  duration_ms: number
  /** The highest number of bots that were connected at the same time. */
  players_max: number
  seats: number
  /** Connections that the server closed. */
  lost: number
  /** In the order in which they came. `players`: how many were connected at the first refusal. */
  limits: (Limit & { players: number; count: number })[]
  /** The limit that came first and bounds the number of players; null: all bots played. */
  first_limit: Limit | null
  find_ms: Percentiles | null
  connect_ms: Percentiles | null
}
type Percentiles = { p50: number; p95: number; max: number }

export class Swarm {
  readonly #options: SwarmOptions
  readonly #ending: AbortSignal
  readonly #began_ms = performance.now()
  readonly #limits = new Map<string, SwarmReport['limits'][number]>()
  readonly #find_ms: number[] = []
  readonly #connect_ms: number[] = []
  #players = 0
  #players_max = 0
  #seats = 0
  #lost = 0

  constructor(options: SwarmOptions) {
    this.#options = options
    this.#ending = AbortSignal.any([options.signal, AbortSignal.timeout(options.duration_ms)])
  }

  /** Resolves when all bots have left. */
  async run(): Promise<SwarmReport> {
    const { bots, pattern, duration_ms } = this.#options
    await Promise.all(Array.from({ length: bots }, (_, index) => this.#runBot(index)))
    const limits = [...this.#limits.values()]
    return {
      bots,
      pattern,
      duration_ms: Math.round(Math.min(duration_ms, performance.now() - this.#began_ms)),
      players_max: this.#players_max,
      seats: this.#seats,
      lost: this.#lost,
      limits,
      first_limit: firstOf(limits, this.#players_max < bots),
      find_ms: percentiles(this.#find_ms),
      connect_ms: percentiles(this.#connect_ms),
    }
  }

  async #runBot(index: number): Promise<void> {
    const { bots, pattern, duration_ms } = this.#options
    if (pattern !== 'burst') await this.#pause((index / bots) * duration_ms * ARRIVAL_SHARE)
    const stay_ms = pattern === 'idle' ? duration_ms : duration_ms * STAY_SHARE
    // The duration ends the loop.
    while (!this.#ending.aborted) {
      let connection: BotConnection
      try {
        connection = await play(this.#options)
      } catch (error) {
        await this.#pause(this.#refuse(error))
        continue
      }
      this.#enter(connection)
      const end = await Promise.race([connection.lost.then(() => 'lost'), this.#pause(stay_ms).then(() => 'left')])
      if (end === 'lost') this.#lost += 1
      else await connection.leave()
      this.#players -= 1
      this.#report()
      if (end === 'lost') await this.#pause(PAUSE_MS)
    }
  }

  #enter({ find_ms, connect_ms }: BotConnection): void {
    this.#players += 1
    this.#players_max = Math.max(this.#players_max, this.#players)
    this.#seats += 1
    for (const [times, time] of [
      [this.#find_ms, find_ms],
      [this.#connect_ms, connect_ms],
    ] as const) {
      times[this.#seats % TIMES_MAX] = time
    }
    this.#report()
  }

  /** Returns the pause before the next attempt. A refusal after the end is none. */
  #refuse(error: unknown): number {
    if (this.#ending.aborted) return 0
    const { retry_after_s, ...limit } = limitOf(error)
    const known = this.#limits.get(limit.code) ?? { ...limit, players: this.#players, count: 0 }
    this.#limits.set(limit.code, { ...known, count: known.count + 1 })
    this.#report()
    return Math.min(retry_after_s === null ? PAUSE_MS : retry_after_s * 1000, PAUSE_MS_MAX)
  }

  #report(): void {
    const refused = [...this.#limits.values()].reduce((sum, { count }) => sum + count, 0)
    this.#options.onChange?.({ players: this.#players, refused })
  }

  /** Ends early at the end of the swarm. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#ending }).catch((error: unknown) => {
      if (!this.#ending.aborted) throw error
    })
  }
}

/** A limit of the pace delays players, and bounds their number only where no other limit did. */
function firstOf(limits: SwarmReport['limits'], is_bounded: boolean): Limit | null {
  const bound = limits.find(({ is_pace }) => !is_pace) ?? (is_bounded ? limits[0] : undefined)
  if (bound === undefined) return null
  const { players: _players, count: _count, ...limit } = bound
  return limit
}

function percentiles(values: readonly number[]): Percentiles | null {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const at = (share: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)
  return { p50: at(0.5), p95: at(0.95), max: at(1) }
}
