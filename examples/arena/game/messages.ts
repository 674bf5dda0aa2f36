// What server and browser say to each other, as JSON text.
import type { Ship, Steering } from './motion.ts'

const NAME_LENGTH_MAX = 16

/**
 * Why a socket was closed; the browser turns the code into a sentence. AWAY: the browser hears nothing, and will be back. BROKEN
 * is what both sides see when the connection broke.
 */
export const CLOSE = {
  REFUSED: 4001,
  TOO_FAST: 4002,
  BAD_MESSAGE: 4003,
  AWAY: 4004,
  STOPPING: 1001,
  BROKEN: 1006,
} as const

/** How long the seat of a player is kept whose connection broke, and how long the browser tries to be back. */
export const BROKEN_RETURN_MS = 30_000

/** `seq` counts the browser's ticks; the answer to it is a snapshot's `acknowledged`. */
export type FromBrowser = ({ type: 'input'; seq: number } & Steering) | { type: 'ping'; sent_ms: number }

export type PlayerView = {
  id: number
  x: number
  y: number
  heading: number
  score: number
  is_dashing: boolean
  is_stunned: boolean
  /** Just arrived, or just hit: cannot be robbed. */
  is_shielded: boolean
}

/** `worth` is 1, or 5 for a golden one. */
export type ShardView = { id: number; x: number; y: number; worth: number }

export type ArenaEvent =
  | { type: 'picked'; player_id: number; x: number; y: number; worth: number }
  | { type: 'hit'; player_id: number; victim_id: number; x: number; y: number; lost: number }
  | { type: 'won'; player_id: number }

export type RosterEntry = { id: number; name: string; colour: number; wins: number }

/** `acknowledged` and `ship`: absent for a spectator, who has no ship. */
export type Snapshot = {
  type: 'snapshot'
  tick: number
  players: PlayerView[]
  shards: ShardView[]
  /** What happened since the last snapshot. */
  events: ArenaEvent[]
  /** Greater than 0 while the winner of the last round is celebrated. */
  pause_ticks: number
  winner_id: number | null
  /** The last input of this player that is in `ship`. */
  acknowledged?: number
  /** This player's own ship, whole: the browser goes on from here. */
  ship?: Ship
}

/** `self_id`: null for a spectator. */
export type FromServer =
  | { type: 'welcome'; lobby_id: string; self_id: number | null; players_max: number; score_to_win: number }
  | { type: 'roster'; players: RosterEntry[] }
  | { type: 'pong'; sent_ms: number }
  | Snapshot

/** What a browser sent, checked member by member; null when it is anything else. */
export function readFromBrowser(text: string): FromBrowser | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null // Not JSON: the same as any other thing that is not a message.
  }
  if (typeof value !== 'object' || value === null) return null
  const { type, seq, x, y, dash, sent_ms } = value as Record<string, unknown>
  if (type === 'ping') return typeof sent_ms === 'number' ? { type, sent_ms } : null
  if (type !== 'input' || typeof dash !== 'boolean') return null
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return null
  if (typeof x !== 'number' || typeof y !== 'number') return null
  const length = Math.hypot(x, y)
  // JSON has no NaN, but 1e999 is Infinity. A longer direction would be a faster ship.
  if (!Number.isFinite(length)) return null
  return length > 1 ? { type, seq, x: x / length, y: y / length, dash } : { type, seq, x, y, dash }
}

/** A name as others may see it: printable, trimmed, not too long. */
export function cleanName(name: string): string {
  const printable = name
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return Array.from(printable).slice(0, NAME_LENGTH_MAX).join('').trim() || 'Pilot'
}
