// How long the finds of the whole platform took in the last hour.
import type { getAdminFinds, ResponseOf } from '@musterhost/contract'
import { findColumns } from '../../analytics/data-sets.ts'
import { readPlatformFinds } from '../../analytics/find-durations.ts'
import { firstMinuteMs } from '../../analytics/last-hour.ts'
import type { Context } from '../../context.ts'

const MINUTES = 60
const MINUTE_MS = 60_000

export async function findLastHour(ctx: Context): Promise<ResponseOf<typeof getAdminFinds>> {
  const start_ms = firstMinuteMs(ctx.now(), MINUTES)
  const { minutes, total } = await readPlatformFinds(ctx.pool, start_ms)
  const columns = findColumns(minutes, (bucket) => start_ms + bucket * MINUTE_MS)
  if (total === null) return { minutes: columns }
  const { bucket: _, ...last_hour } = total
  return { last_hour, minutes: columns }
}
