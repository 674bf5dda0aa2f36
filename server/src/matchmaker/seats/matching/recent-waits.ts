// How long players of each game mode waited for their last matches, in memory. A request without a match returns the median.

const KEPT_MS = 3_600_000
/** Waits of one game mode. */
const WAITS_MAX = 64
/** A median of fewer says nothing. */
const WAITS_MIN = 5
/** Game modes that are remembered. The one whose last match is the oldest is forgotten first. */
const GAME_MODES_MAX = 1_000

type PlayerWait = { end_ms: number; wait_ms: number }

export class RecentWaits {
  readonly #waits = new Map<string, PlayerWait[]>()

  /** A player got a match at `now_ms`. */
  add(namespace_id: string, game_mode: string, wait_ms: number, now_ms: number): void {
    const key = `${namespace_id} ${game_mode}`
    const waits = this.#waits.get(key) ?? []
    this.#waits.delete(key)
    this.#waits.set(key, waits)
    waits.push({ end_ms: now_ms, wait_ms })
    if (waits.length > WAITS_MAX) waits.shift()
    if (this.#waits.size > GAME_MODES_MAX) this.#waits.delete(this.#waits.keys().next().value!)
  }

  /** Half of the last players waited at most so many milliseconds. Null: too few had a match in the last hour. */
  median(namespace_id: string, game_mode: string, now_ms: number): number | null {
    const waits = this.#waits.get(`${namespace_id} ${game_mode}`) ?? []
    const recent = waits.filter(({ end_ms }) => now_ms - end_ms <= KEPT_MS).map(({ wait_ms }) => wait_ms)
    if (recent.length < WAITS_MIN) return null
    return recent.sort((a, b) => a - b)[Math.ceil(recent.length / 2) - 1]!
  }
}
