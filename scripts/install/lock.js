// One install at a time in a checkout. The lock is the system's, on the folder: it ends with the processes that have it, also
// when they are killed.
import { spawnSync } from 'node:child_process'
import { openSync } from 'node:fs'

/** An install takes minutes on a slow line. */
const WAIT_MS_MAX = 30 * 60_000
/** The number that the child sees. */
const LOCKED_FD = 3

/** Returns the file descriptor that has the lock. npm gets it too: an npm that outlives this process keeps others out. */
export function takeLock(folder) {
  const fd = openSync(folder, 'r')
  const flock = (...options) =>
    spawnSync('flock', [...options, String(LOCKED_FD)], {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      timeout: WAIT_MS_MAX,
    })
  const { error, status } = flock('-n')
  // Without flock, which every Linux has, installs are not kept apart.
  if (error !== undefined || status === 0) return fd
  console.error('Another install is under way in this folder; waiting for its end.')
  flock()
  return fd
}
