// `muster restart`: asks the supervisor of a data folder to restart its roles, and waits until all have new processes.
import { setTimeout as delay } from 'node:timers/promises'
import { readConfig } from '../config/read-config.ts'
import { StartError } from '../config/start-error.ts'
import { holderOf, isLocked } from './lock.ts'

/** Four roles start one after the other. */
const RESTART_MS_MAX = 240_000
const CHECK_EVERY_MS = 200

/**
 * Resolves when every role has been replaced. `onRole` gets each role when it has a new process. Throws a StartError where no
 * platform runs, and after RESTART_MS_MAX.
 */
export async function restartRoles(
  env: NodeJS.ProcessEnv,
  onRole: (role: string, progress: { done: number; of: number }) => void,
): Promise<void> {
  const { data_dir } = readConfig(env)
  const holder = isLocked(data_dir) ? holderOf(data_dir) : null
  if (holder === null) {
    throw new StartError(`No platform runs on ${data_dir}: set MUSTER_DATA to the data folder of yours, or start it.`)
  }
  const before = new Set(holder.roles.map(({ pid }) => pid))
  const restarted = new Set<string>()
  process.kill(holder.pid, 'SIGUSR2')
  for (let waited_ms = 0; waited_ms < RESTART_MS_MAX; waited_ms += CHECK_EVERY_MS) {
    const fresh = (holderOf(data_dir)?.roles ?? []).filter(({ pid }) => !before.has(pid))
    for (const { role } of fresh) {
      if (restarted.has(role)) continue
      restarted.add(role)
      onRole(role, { done: restarted.size, of: before.size })
    }
    if (fresh.length >= before.size) return
    await delay(CHECK_EVERY_MS)
  }
  throw new StartError(`Not every role has restarted within ${RESTART_MS_MAX / 1_000} s; logs/supervisor.log says why.`)
}
