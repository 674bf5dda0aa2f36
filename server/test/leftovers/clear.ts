// Removes what dead runs of tests left on this machine. A run is dead when the process that made its mark is gone and no
// process holds the lock of its folder. What belongs to a living run, or bears no mark, stays.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import pino from 'pino'
import { findAccount } from '../../src/database/embedded/account.ts'
import { endProcesses } from '../../src/database/embedded/processes.ts'
import { SOCKET_FOLDER_FILE } from '../../src/database/embedded/socket-folder.ts'
import {
  detachLoops,
  foldersIn,
  groupNames,
  marksOfNetworks,
  pidsInNamespaces,
  removeGroups,
  removeMarkedNetworks,
  removePlatformNetworks,
  unmount,
} from './kernel.ts'
import { killProcesses, marksOfProcesses, type RunTraces } from './processes.ts'
import { findRunFolders, isLivingMark, markIn, namesIn, removeFolder, runMark } from './run.ts'

/** Podman's command that cleans up after a container refuses a longer path than 50 characters. */
const PODMAN_PARENT = '/run'
const PODMAN_PREFIX = 'muster-podman-'

type DeadRun = Pick<RunTraces, 'mark' | 'folders'>

/** Returns a line about each thing that was removed. A run that cannot be cleared does not keep the others from it. */
export async function clearDeadRuns(): Promise<string[]> {
  const lines: string[] = []
  for (const run of findDeadRuns()) {
    try {
      lines.push(...(await clearRun(run)))
    } catch (error) {
      lines.push(`what a dead run of tests left could not be removed: ${String(error)}`)
    }
  }
  return lines
}

function findDeadRuns(): DeadRun[] {
  const folders = findRunFolders()
  const marks = new Set([
    ...folders.map(({ mark }) => mark),
    ...marksOfProcesses(),
    ...marksOfNetworks(),
    ...podmanFolders().map(({ mark }) => mark),
  ])
  const runs = [...marks].map((mark) => ({ mark, found: folders.filter((folder) => folder.mark === mark) }))
  const dead = runs.filter(({ mark, found }) => !isLivingMark(mark) && found.every(({ is_locked }) => !is_locked))
  return dead.map(({ mark, found }) => ({ mark, folders: found.map(({ path }) => path) }))
}

/** Ends and removes everything of the run, its folders included. */
async function clearRun({ mark, folders }: DeadRun): Promise<string[]> {
  const lines = await clearOutside({ mark, folders })
  for (const folder of folders) {
    await removeFolder(folder)
    lines.push(`folder ${folder}`)
  }
  return lines
}

/** Ends and removes everything of the run except its folders. */
export async function clearOutside({ mark, folders }: DeadRun): Promise<string[]> {
  for (const folder of folders) await endDatabase(folder)
  const data_dirs = folders.flatMap(foldersIn)
  const groups = groupNames(data_dirs)
  const killed = await killProcesses({ mark, folders, groups, pids: pidsInNamespaces(mark) })
  const lines = killed > 0 ? [`${killed} processes`] : []
  lines.push(...folders.flatMap(unmount).map((place) => `mount ${place}`))
  lines.push(...folders.flatMap(detachLoops))
  lines.push(...removeGroups(groups).map((path) => `control group ${path}`))
  lines.push(...(await removePlatformNetworks(data_dirs)))
  lines.push(...removeMarkedNetworks(mark))
  const outside = podmanFolders().flatMap((one) => (one.mark === mark ? [one.path] : []))
  for (const path of [...outside, ...socketFolders(data_dirs)].filter((one) => existsSync(one))) {
    lines.push(...unmount(path).map((place) => `mount ${place}`), `folder ${path}`)
    await removeFolder(path)
  }
  return lines
}

/** After a test that killed a platform: what it left outside of its data folder. Its processes have ended. */
export async function clearDataFolder(data_dir: string): Promise<void> {
  const path = resolve(data_dir)
  removeGroups(groupNames([path]))
  await removePlatformNetworks([path])
}

/** As the user of the database, because root in a container may lack the privilege to inspect another user's processes. */
async function endDatabase(folder: string): Promise<void> {
  const cluster = join(folder, 'postgres')
  if (!existsSync(cluster)) return
  const log = pino({ level: 'error' }, pino.destination(2))
  await endProcesses(cluster, await findAccount(cluster, log), log)
}

/**
 * The folder for what a Podman keeps while it runs. With a longer path Podman waits 20 s for the exit of each container that
 * it kills.
 */
export function makePodmanFolder(): string {
  return mkdtempSync(join(PODMAN_PARENT, `${PODMAN_PREFIX}${runMark()}-`))
}

function podmanFolders(): { path: string; mark: string }[] {
  return namesIn(PODMAN_PARENT).flatMap((name) => {
    const mark = markIn(name, PODMAN_PREFIX)
    return mark === null ? [] : [{ path: join(PODMAN_PARENT, name), mark }]
  })
}

/** Where the sockets of the platforms' databases are, if not in the folder of the run. */
function socketFolders(data_dirs: readonly string[]): string[] {
  return data_dirs.flatMap((data_dir) => {
    const memory = join(data_dir, 'keys', SOCKET_FOLDER_FILE)
    return existsSync(memory) ? readFileSync(memory, 'utf8').trim() : []
  })
}
