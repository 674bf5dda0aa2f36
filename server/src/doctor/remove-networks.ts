// `muster doctor --remove-networks`: for a platform that does not come back, such as one whose machine gets another use.
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readConfig } from '../config/read-config.ts'
import { StartError } from '../config/start-error.ts'
import { removeNetworks } from '../runner/network/removal.ts'
import { isLocked } from '../supervisor/lock.ts'

/** A runner that lives changes a file of its folder each second, also one that runs as a service of its own. */
const SEEN_MS_MAX = 5_000

/** Returns what was removed. Throws a StartError that names the remedy. `now_ms`: the wall clock. */
export async function removeLeftNetworks(env: NodeJS.ProcessEnv, now_ms: number): Promise<string[]> {
  const { data_dir } = readConfig(env)
  if (process.getuid?.() !== 0)
    throw new StartError('The networks of lobbies belong to root: sudo muster doctor --remove-networks')
  if (isLocked(data_dir) || isSeen(data_dir, now_ms))
    throw new StartError(`A platform runs on ${data_dir}. End it first, with its lobbies: Ctrl-C, or SIGINT.`)
  const removal = await removeNetworks(resolve(data_dir))
  if ('removed' in removal) return removal.removed
  const pids = removal.living.join(' ')
  throw new StartError(
    `Lobbies of ${data_dir} still run. End them: start the platform and end it by Ctrl-C, or kill ${pids}`,
  )
}

function isSeen(data_dir: string, now_ms: number): boolean {
  const file = statSync(join(data_dir, 'lobbies', 'seen'), { throwIfNoEntry: false })
  return file !== undefined && Math.abs(now_ms - file.mtimeMs) < SEEN_MS_MAX
}
