// How much of a disk is free. PostgreSQL stops when its disk is full, so the platform stops taking things before that.
import { statfs } from 'node:fs/promises'

/** Below this many times the minimum of a setting, a disk is low, and the operator is warned. */
export const DISK_LOW_FACTOR = 2

/** Bytes that an unprivileged process may still write where the folder lies. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
