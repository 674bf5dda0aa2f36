// The lock of the cluster. Without it a second start on the same data folder would take a database that is in use
// for one that was left behind, and end it. The SQLite inside Node locks its files with the kernel's own locks, so an
// open exclusive transaction on an empty file is a lock that is gone in the instant in which its holder dies.
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Null when somebody else holds it, in this process or another one. */
export function lockFile(path: string): { release: () => void } | null {
  const file = new DatabaseSync(path)
  try {
    file.exec('pragma busy_timeout = 0; pragma journal_mode = memory; begin exclusive')
    return { release: () => file.close() }
  } catch (error) {
    file.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null
    throw error
  }
}
