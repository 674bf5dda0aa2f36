// Rays that are worth keeping: gathered in memory and written in batches, off the way of the request. What comes faster
// than it can be written is dropped, and counted in the log: a ray is for people who look for a reason, not for accounts.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { BatchWriter } from '../../batch-writer.ts'

const FLUSH_EVERY_MS = 1_000
const GATHERED_MAX = 500
/** The newest of a namespace; older ones are removed with the next sweep. */
export const NAMESPACE_RAYS_MAX = 10_000

/** `explanation` is JSON text. */
export type Ray = {
  ray_id: string
  namespace_id: string
  operation: string
  create_ms: number
  duration_us: number
  code: string | null
  explanation: string
}

export type Rays = {
  keep: (ray: Ray) => void
  /** Resolves when everything that is kept so far has been written, or could not be. */
  flush: () => Promise<void>
  /** Removes what is too much in the namespaces that have been written to. Answers how many. */
  trim: () => Promise<number>
  close: () => Promise<void>
}

export function createRays({ pool, log }: { pool: Pool; log: Logger }): Rays {
  let grown = new Set<string>()
  const writer = new BatchWriter<Ray>({
    every_ms: FLUSH_EVERY_MS,
    items_max: GATHERED_MAX,
    async write(batch) {
      await pool.query({ name: 'rays', text: INSERT_SQL, values: [JSON.stringify(batch)] })
      for (const { namespace_id } of batch) grown.add(namespace_id)
    },
    onDropped: (dropped_count) => log.warn({ dropped_count }, 'explanations are dropped: more than can be written'),
    onFailure: (error, count) => log.warn({ err: error, count }, 'explanations are dropped: they cannot be written'),
  })

  return {
    keep: (ray) => writer.add(ray),
    flush: () => writer.flush(),
    async trim() {
      const namespace_ids = [...grown]
      grown = new Set()
      const { rowCount } = await pool.query(TRIM_SQL, [namespace_ids, NAMESPACE_RAYS_MAX])
      return rowCount ?? 0
    },
    close: () => writer.close(),
  }
}

/** A namespace may be gone by now. */
const INSERT_SQL = `
  insert into rays (ray_id, namespace_id, operation, create_ts, duration_us, code, explanation)
  select ray_id, namespace_id, operation, to_timestamp(create_ms / 1000), duration_us, code, explanation
  from json_to_recordset($1) as ray (
    ray_id uuid, namespace_id uuid, operation text, create_ms float8, duration_us bigint, code text, explanation text
  )
  where exists (select from namespaces where namespaces.namespace_id = ray.namespace_id)
  on conflict do nothing`

const TRIM_SQL = `
  delete from rays using (
    select grown.namespace_id, oldest.create_ts
    from unnest($1::uuid[]) as grown (namespace_id), lateral (
      select create_ts from rays where rays.namespace_id = grown.namespace_id
      order by create_ts desc offset $2 limit 1
    ) as oldest
  ) as too_many
  where rays.namespace_id = too_many.namespace_id and rays.create_ts <= too_many.create_ts`
