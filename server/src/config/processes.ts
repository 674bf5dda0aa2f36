// How many processes a role has on one machine, and which of them this one is.

/** Processes of one role on one machine. */
export const PROCESSES_MAX = 16

/** One process of a role. `number`: from 0. `count`: processes of the role on this machine. */
export type ProcessNumber = { number: number; count: number }

/** What logs, the terminal and tables call the process: `matchmaker`, then `matchmaker-2`. */
export function instanceName(role: string, number: number): string {
  return number === 0 ? role : `${role}-${number + 1}`
}
