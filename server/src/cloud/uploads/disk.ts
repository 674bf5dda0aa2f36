// Uploads leave a part of the disk free: the database, the journal before all, needs it more.
import { ApiError } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { freeBytes } from '../../observe/disk.ts'

const RETRY_AFTER_S = 60

/** Throws API_NOT_AVAILABLE when these bytes, and those that others are sending, would leave too little free. */
export async function requireDisk(ctx: Context, content_length: number, arriving_bytes = 0): Promise<void> {
  const free_bytes = await freeBytes(ctx.config.data_dir)
  if (free_bytes - arriving_bytes - content_length >= ctx.config.uploads.disk_free_bytes_min) return
  throw diskFull()
}

export function diskFull(): ApiError {
  const message = "The platform's disk is nearly full; it takes no uploads until there is room again."
  return new ApiError('API_NOT_AVAILABLE', { reason: 'disk_full' }, { message, retry_after_s: RETRY_AFTER_S })
}

/** The disk, or the quota on it, was full while the bytes were written. */
export function isDiskFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}
