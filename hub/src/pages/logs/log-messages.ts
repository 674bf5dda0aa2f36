// What the page and the worker of a log send each other.
import type { ParsedLogLine } from './log-lines.ts'

/** Lines of all streams of a view together. The oldest are left out of a longer log. */
export const ROWS_MAX = 200_000

export type LogRow = ParsedLogLine & {
  /** Its stream, and its number there, from 1. */
  stream: number
  line: number
  ts_ms: number
}

/** `streams`: the shown ones, by their place. `level`: the lowest that is shown. */
export type LogFilter = { text: string; is_expression: boolean; level: 'all' | 'warn' | 'error'; streams: number[] }

export type ToWorker =
  | { kind: 'append'; stream: number; lines: readonly { ts: string; text: string }[] }
  | { kind: 'filter'; filter: LogFilter }

/**
 * Rows are numbered in the order of their arrival, and shown in the order of their times. `added`: the row numbers to show
 * after those before. `shown`: all that are shown, in place of those before. `first`: older rows are left out.
 */
export type FromWorker =
  | { kind: 'rows'; rows: LogRow[]; first: number; added: Uint32Array | null; shown: Uint32Array | null }
  | { kind: 'filtered'; shown: Uint32Array; error: string | null }
