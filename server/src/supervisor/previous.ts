// What a supervisor that was killed left behind. Its roles end by themselves when they notice that their channel is
// closed; the next supervisor waits for them, so that ports are free and no two runners look after one lobby, and kills
// those that do not end (one that is stopped by a signal cannot notice anything).
import { setTimeout as wait } from 'node:timers/promises'
import { isAlive, type ProcessId } from '../procfs.ts'

/** What a role of the previous supervisor gets to end by itself. */
const PREVIOUS_ROLE_MS_MAX = 5_000
const LOOK_AGAIN_MS = 20

/** Resolves when none of them lives: how many had to be waited for, and how many killed. */
export async function endPreviousRoles(roles: readonly ProcessId[]): Promise<{ found: number; killed: number }> {
  const found = roles.filter((role) => isAlive(role))
  let living = found
  for (let waited_ms = 0; living.length > 0 && waited_ms < PREVIOUS_ROLE_MS_MAX; waited_ms += LOOK_AGAIN_MS) {
    await wait(LOOK_AGAIN_MS)
    living = living.filter((role) => isAlive(role))
  }
  const killed = living.length
  for (const role of living) killIfThere(role.pid)
  for (let waited_ms = 0; living.length > 0 && waited_ms < PREVIOUS_ROLE_MS_MAX; waited_ms += LOOK_AGAIN_MS) {
    await wait(LOOK_AGAIN_MS)
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
