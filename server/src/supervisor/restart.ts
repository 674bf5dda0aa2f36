// The delay before a part that died is restarted: none the first time, then a growing, bounded one. Restarts never end. A
// part that lived for STEADY_AFTER_MS begins again without a delay.

/** The delays before the first, second, third... restart in a row. The last one applies to all further restarts. */
export const RESTART_DELAYS_MS = [0, 250, 500, 1_000, 2_000, 5_000] as const
/** After a life of this length the next death counts as the first. */
export const STEADY_AFTER_MS = 30_000
/** From this number of deaths in a row on, the message says that the part keeps failing. */
export const FAILING_AFTER_DEATHS = 4

export type Restart = { delay_ms: number; deaths_in_a_row: number; is_failing: boolean }

export type RestartPolicy = {
  /** The part lived for `lived_ms` and died. */
  died(lived_ms: number): Restart
}

export function createRestartPolicy(): RestartPolicy {
  let deaths_in_a_row = 0
  return {
    died(lived_ms) {
      deaths_in_a_row = lived_ms >= STEADY_AFTER_MS ? 1 : deaths_in_a_row + 1
      const last = RESTART_DELAYS_MS.length - 1
      const delay_ms = RESTART_DELAYS_MS[Math.min(deaths_in_a_row - 1, last)] ?? 0
      return { delay_ms, deaths_in_a_row, is_failing: deaths_in_a_row >= FAILING_AFTER_DEATHS }
    },
  }
}

/** "at once", "in 0.5 s (it keeps failing: 4 times in a row)". */
export function restartPhrase(restart: Restart): string {
  const when = restart.delay_ms === 0 ? 'at once' : `in ${restart.delay_ms / 1_000} s`
  return restart.is_failing ? `${when} (it keeps failing: ${restart.deaths_in_a_row} times in a row)` : when
}
