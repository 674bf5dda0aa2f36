// A run of tests has a folder and a mark. The folder contains the run's PostgreSQL and everything that its tests write. What
// tests make elsewhere (network namespaces, interfaces, folders in /run, processes) carries the mark: a name or a variable
// with the pid and the start time of run.ts, or of a test file that was started alone. clear.ts removes what dead runs left.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockFile } from '../../src/database/embedded/lock.ts'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { readStat } from '../../src/node/procfs.ts'

const FOLDER_PREFIX = 'muster-test-'
/** The environment variable with the mark. Programs that tests start inherit it. */
export const RUN_VARIABLE = 'TEST_RUN'
/** Linux has a file system in memory there; in a container it may be small. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 4 * 1024 ** 3
const MARK = '[0-9a-z]+-[0-9a-z]+'
/** Begins the names of all namespaces that tests make. */
const NAME_PREFIX = 'mt-'
const MARK_FILE = 'run'
/** Held by the process of the run. The kernel releases it with the process, however that ends. */
const LOCK_FILE = 'run.lock'
const REMOVALS_MAX = 10

export type RunFolder = { path: string; mark: string; release: () => void }

/** In memory where there is room: nearly every test has its database copied, and removed again. */
export async function makeRunFolder(): Promise<RunFolder> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
  const path = await mkdtemp(join(bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY : tmpdir(), FOLDER_PREFIX))
  const mark = markOf(process.pid)
  await writeFile(join(path, MARK_FILE), mark)
  const lock = lockFile(join(path, LOCK_FILE))
  if (lock === null) throw new Error(`${path} is new, and another process has locked it.`)
  return { path, mark, release: lock.release }
}

/** The mark of the run to which this process belongs. */
export function runMark(): string {
  const mark = process.env[RUN_VARIABLE] ?? markOf(process.pid)
  // Programs that a test file started alone starts inherit it.
  process.env[RUN_VARIABLE] = mark
  return mark
}

let names = 0

/** A name for a network namespace, different at each call. */
export function markedName(what: string): string {
  return `${NAME_PREFIX}${runMark()}-${process.pid.toString(36)}${(names++).toString(36)}-${what}`
}

/** The mark in a name that markedName() made, or in one with this prefix; null for another name. */
export function markIn(name: string, prefix = NAME_PREFIX): string | null {
  if (!name.startsWith(prefix)) return null
  return new RegExp(`^(${MARK})(?:-|$)`).exec(name.slice(prefix.length))?.[1] ?? null
}

function markOf(pid: number): string {
  // Without /proc the pid alone must do.
  return `${pid.toString(36)}-${Number(readStat(pid)?.start_time ?? 0).toString(36)}`
}

export type FoundFolder = { path: string; mark: string; is_locked: boolean }

/** The folders of all runs on this machine, living and dead. */
export function findRunFolders(): FoundFolder[] {
  const parents = new Set([tmpdir(), MEMORY, '/tmp'])
  return [...parents].flatMap((parent) =>
    namesIn(parent).flatMap((name) => {
      const path = join(parent, name)
      const mark = name.startsWith(FOLDER_PREFIX) ? readMark(path) : null
      return mark === null ? [] : [{ path, mark, is_locked: isLocked(path) }]
    }),
  )
}

/** Null: it is not the folder of a run, or this user may not read it. */
function readMark(path: string): string | null {
  try {
    return readFileSync(join(path, MARK_FILE), 'utf8')
  } catch {
    return null
  }
}

/** A lock that this user may not try counts as held. */
function isLocked(path: string): boolean {
  const file = join(path, LOCK_FILE)
  if (!existsSync(file)) return false
  try {
    const lock = lockFile(file)
    lock?.release()
    return lock === null
  } catch {
    return true
  }
}

/** Whether the process that made the mark lives. */
export function isLivingMark(mark: string): boolean {
  const pid = Number.parseInt(mark, 36)
  return process.platform === 'linux' ? markOf(pid) === mark && readStat(pid)?.state !== 'Z' : sendSignal(pid, 0)
}

export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: REMOVALS_MAX })
}
