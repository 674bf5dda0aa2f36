// The journal: the state of the books as append-only rows. One row contains everything that one shard decided since the row
// before. It is the source of truth, the event log, the outbox and the replay log. Only the matchmaker writes it
// (matchmaker/shards/fence.ts). Readers read it by seq (read.ts) or follow it (follow.ts).
import type { Change } from './changes.ts'

/** Shards of the platform. Namespaces are distributed over them. */
export const SHARD_COUNT = 64

export type Entry = { namespace_id: string; changes: readonly Change[] }

/**
 * `format`: increased with the first change that older code cannot read. `ms`: book time. A takeover row has no entries.
 * `moved_ms`: all deadlines of earlier rows are later by this duration.
 */
export type Page = { format: 1; ms: number; entries: readonly Entry[]; moved_ms?: number }

/** The shard of a namespace, by the last bits of its id, which are random. */
export function shardOf(namespace_id: string): number {
  return Number.parseInt(namespace_id.slice(-4), 16) % SHARD_COUNT
}

/** JSON as bytes, so that no text of a player or developer can make the database refuse the row. */
export function encodePage(page: Page): Buffer {
  return Buffer.from(JSON.stringify(page))
}

export function decodePage(payload: Buffer): Page {
  const page = JSON.parse(payload.toString()) as Page
  if (page.format !== 1)
    throw new Error(`the journal contains a page of format ${page.format}, newer than this program`)
  return page
}
