// The marks of damaged objects. The role that reads bytes which are not those that were uploaded inserts a mark, and
// from then on every role refuses the object. A mark is a suspicion until the api's scrub (cloud/scrub/) has read the
// object a second time: then the object is set aside, or the mark removed.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { CHANNELS } from '../wire/channels.ts'

type Reporter = {
  pool: Pool
  log: Logger
  now: () => number
  config: { roles: readonly string[] }
  metrics: { damage_found: { inc: (labels: { reason: string }) => void } }
}
type Damage = Error & { object_key: string; reason: string }

/**
 * Marks the object, logs and counts it. Only objects of completed uploads are marked: any other is about to be removed
 * or sent again. A failed insert is logged: the next reader of the object finds the damage again.
 */
export async function reportDamage(ctx: Reporter, damage: Damage): Promise<void> {
  const { object_key, reason } = damage
  const found_by = ctx.config.roles.join(',')
  ctx.metrics.damage_found.inc({ reason })
  try {
    const { rowCount } = await ctx.pool.query(
      `with mark as (
         insert into damaged_objects (object_key, reason, found_by, found_ts)
         select f.object_key, $2, $3, $4 from upload_files f join uploads u on u.upload_id = f.upload_id
         where f.object_key = $1 and u.complete_ts is not null
         on conflict do nothing returning object_key
       )
       select pg_notify('${CHANNELS.damaged_objects}', object_key) from mark`,
      [object_key, reason, found_by, new Date(ctx.now())],
    )
    if (rowCount === 1) ctx.log.error({ object_key, reason }, 'a stored object is damaged; it is not used any more')
  } catch (error) {
    ctx.log.warn(
      { err: error, object_key, reason },
      'a damaged object could not be marked; its next reader tries again',
    )
  }
}
