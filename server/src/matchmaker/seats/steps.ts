// How far a request for a seat has come. A process that continues the request of another one begins with its steps.
import type { RequestAttributes } from './matching/player-attributes.ts'

export type SeatSteps = {
  /** The number of the lobby that is tried. */
  attempt: number
  /** Null: no captcha was checked yet. */
  has_solved_captcha: boolean | null
  /** The durable seat whose lobby the request waits for. */
  seat: { lobby_id: string; player_id: string; is_new: boolean } | null
  /** The ticket under which the request waits for a match. */
  ticket_id: string | null
  /** What the rules of the game mode know of its players. Null: it was not read yet. */
  attributes: RequestAttributes | null
}

/** Makes the record of a call into steps: those that it has, or the first ones. */
export function beginSteps(record: Record<string, unknown>): SeatSteps {
  return Object.assign(record, {
    attempt: 1,
    has_solved_captcha: null,
    seat: null,
    ticket_id: null,
    attributes: null,
    ...record,
  })
}
