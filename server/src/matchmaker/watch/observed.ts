// What a matchmaker reads of edges and nodes every second, because they report as often without a notification. An idle process
// does little else than such reads, so one statement reads both. Its readers begin in the same moment, and share the statement.
import type { Context } from '../../context.ts'
import { createPoller, type Poller, type PollerOptions } from '../../database/poller.ts'
import { EDGES_SQL, type EdgeRow } from './edge-reports.ts'
import { NODES_SQL, type NodeRow } from './nodes.ts'

const READ_EVERY_MS = 1_000

type Observation = { edges: readonly EdgeRow[]; nodes: readonly NodeRow[] }

export class Observed {
  readonly #ctx: Pick<Context, 'pool' | 'log'>
  readonly #readers = new Set<Poller>()
  readonly #timer: NodeJS.Timeout
  /** Its statement has not been sent yet. */
  #next: Promise<Observation> | null = null

  constructor(ctx: Pick<Context, 'pool' | 'log'>) {
    this.#ctx = ctx
    this.#timer = setInterval(() => {
      for (const reader of this.#readers) reader.wake()
    }, READ_EVERY_MS)
  }

  /** Calls `run` now, and every second. */
  follow(options: PollerOptions): Poller {
    const reader = createPoller(this.#ctx, options)
    this.#readers.add(reader)
    reader.wake()
    return {
      ...reader,
      close: () => {
        this.#readers.delete(reader)
        return reader.close()
      },
    }
  }

  /** As the tables are after this call. */
  read(): Promise<Observation> {
    this.#next ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#next = null
      return readAll(this.#ctx)
    })
    return this.#next
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

async function readAll({ pool }: Pick<Context, 'pool'>): Promise<Observation> {
  const { rows } = await pool.query<Observation>({
    name: 'matchmaker-observation',
    text: `select (select coalesce(json_agg(edge), '[]') from (${EDGES_SQL}) as edge) as edges,
      (select coalesce(json_agg(node), '[]') from (${NODES_SQL}) as node) as nodes`,
  })
  return rows[0]!
}
