// Stores explanations: buffered in memory and written in batches, so that no request waits for the database. Explanations
// that arrive faster than they can be written are dropped, and the log reports how many.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { ASYNCHRONOUS } from '../../database/asynchronous.ts'
import type { Listener } from '../../database/listen.ts'
import { BatchWriter } from '../../flow/batch-writer.ts'
import { CHANNELS } from '../../wire/channels.ts'

/** Pages show a request within a second of its end. */
const FLUSH_EVERY_MS = 250
/** Explanations that wait for the next write. */
const BUFFERED_MAX = 500
/** Explanations that a namespace keeps: the newest. The next sweep removes the others. */
export const NAMESPACE_EXPLANATIONS_MAX = 10_000

/** `explanation` is JSON text. */
export type StoredExplanation = {
  ray_id: string
  namespace_id: string
  operation: string
  create_ms: number
  duration_us: number
  code: string | null
  explanation: string
}

export type ExplanationStore = {
  keep: (explanation: StoredExplanation) => void
  /** Resolves when everything that was kept before has been written, or dropped. */
  flush: () => Promise<void>
  /** Removes the oldest rows of the namespaces that exceed their bound. Returns how many. */
  trim: () => Promise<number>
  close: () => Promise<void>
}

export function createExplanationStore({
  pool,
  log,
  listener,
}: {
  pool: Pool
  log: Logger
  listener: Pick<Listener, 'on'>
}): ExplanationStore {
  let grown = new Set<string>()
  const writer = new BatchWriter<StoredExplanation>({
    every_ms: FLUSH_EVERY_MS,
    items_max: BUFFERED_MAX,
    async write(batch) {
      await pool.query({ name: 'explanations', text: INSERT_SQL, values: [JSON.stringify(batch)] })
      for (const { namespace_id } of batch) grown.add(namespace_id)
    },
    onDropped: (dropped_count) => log.warn({ dropped_count }, 'explanations are dropped: more than can be written'),
    onFailure: (error, count) => log.warn({ err: error, count }, 'explanations are dropped: they cannot be written'),
  })

  // Somebody wants to read one, which any of the processes may have.
  const unsubscribe = listener.on(CHANNELS.explanations_wanted, () => void writer.flush())
  return {
    keep: (explanation) => writer.add(explanation),
    flush: () => writer.flush(),
    async trim() {
      const namespace_ids = [...grown]
      grown = new Set()
      const { rowCount } = await pool.query(TRIM_SQL, [namespace_ids, NAMESPACE_EXPLANATIONS_MAX])
      return rowCount ?? 0
    },
    close() {
      unsubscribe()
      return writer.close()
    },
  }
}

/** The namespace may have been deleted in the meantime. The feeds of the namespaces are notified. */
const INSERT_SQL = `
  with written as (insert into explanations (ray_id, namespace_id, operation, create_ts, duration_us, code, explanation)
  select ray_id, namespace_id, operation, to_timestamp(create_ms / 1000), duration_us, code, explanation
  from json_to_recordset($1) as ray (
    ray_id uuid, namespace_id uuid, operation text, create_ms float8, duration_us bigint, code text, explanation text
  ), ${ASYNCHRONOUS}
  where exists (select from namespaces where namespaces.namespace_id = ray.namespace_id)
  on conflict do nothing returning namespace_id)
  select pg_notify('${CHANNELS.explanations}', namespace_id::text) from (select distinct namespace_id from written) as changed`

const TRIM_SQL = `
  delete from explanations using (
    select grown.namespace_id, oldest.create_ts
    from unnest($1::uuid[]) as grown (namespace_id), lateral (
      select create_ts from explanations where explanations.namespace_id = grown.namespace_id
      order by create_ts desc offset $2 limit 1
    ) as oldest
  ) as too_many
  where explanations.namespace_id = too_many.namespace_id and explanations.create_ts <= too_many.create_ts`
