// The roles of a killed supervisor. Each ends when its channel to the supervisor closes. The next supervisor waits for
// them, so that ports are free and only one runner serves the lobbies. It kills those that do not end, such as a process
// that is suspended by a signal.
import { setTimeout as wait } from 'node:timers/promises'
import { isAlive, type ProcessId } from '../node/procfs.ts'

/** Time in which an orphaned role must end, before its SIGKILL and again after it. */
const ORPHAN_MS_MAX = 5_000
const POLL_MS = 20

/** Resolves when none of them lives. `found`: how many lived. `killed`: how many of them were killed. */
export async function endOrphanedRoles(roles: readonly ProcessId[]): Promise<{ found: number; killed: number }> {
  const found = roles.filter((role) => isAlive(role))
  let living = found
  for (let waited_ms = 0; living.length > 0 && waited_ms < ORPHAN_MS_MAX; waited_ms += POLL_MS) {
    await wait(POLL_MS)
    living = living.filter((role) => isAlive(role))
  }
  const killed = living.length
  for (const role of living) killIfThere(role.pid)
  for (let waited_ms = 0; living.length > 0 && waited_ms < ORPHAN_MS_MAX; waited_ms += POLL_MS) {
    await wait(POLL_MS)
    living = living.filter((role) => isAlive(role))
  }
  return { found: found.length, killed }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
