// How much of a disk is free. PostgreSQL stops when its disk is full, so the platform stops taking things before that.
import { statfs } from 'node:fs/promises'

/** Bytes that an unprivileged process may still write where the folder lies. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
