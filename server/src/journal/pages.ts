// The journal: what the books are, as rows that are only ever appended. One row holds all that one shard decided since
// the row before it. It is truth, event, outbox and replay in one. The matchmaker alone writes it (matchmaker/shards/fence.ts);
// whoever wants to know what has happened reads it by seq (read.ts), or follows it (follow.ts).
import type { Change } from './changes.ts'

export const SHARD_COUNT = 64

export type Entry = { namespace_id: string; changes: readonly Change[] }

/**
 * `format` grows with the first change that older code could not read. `ms`: book time. A takeover row has no entries;
 * `moved_ms`: every deadline that stands before it is this much later from here on.
 */
export type Page = { format: 1; ms: number; entries: readonly Entry[]; moved_ms?: number }

/** Which shard's journal a namespace is written in: by the last bits of its id, which are random. */
export function shardOf(namespace_id: string): number {
  return Number.parseInt(namespace_id.slice(-4), 16) % SHARD_COUNT
}

/** JSON in bytes: no text that a player or developer sends can make the database refuse the row. */
export function encodePage(page: Page): Buffer {
  return Buffer.from(JSON.stringify(page))
}

export function decodePage(payload: Buffer): Page {
  const page = JSON.parse(payload.toString()) as Page
  if (page.format !== 1) throw new Error(`the journal holds a page of format ${page.format}, newer than this program`)
  return page
}
