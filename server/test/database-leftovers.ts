// Where the PostgreSQL of a test run has its data, and what runs that were killed left there: a server that lives on, and
// its folders. The next run ends and removes it. A folder whose lock is held belongs to a run that lives.
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { findAccount } from '../src/database/embedded/account.ts'
import { lockFile } from '../src/database/embedded/lock.ts'
import { endProcesses } from '../src/database/embedded/processes.ts'

export const FOLDER_PREFIX = 'muster-test-'
/** Linux has a file system in memory there; in a container it may be small. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 4 * 1024 ** 3

/** In memory where there is room: nearly every test has its database copied, and removed again. */
export async function makeServerFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
  return mkdtemp(join(bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY : tmpdir(), FOLDER_PREFIX))
}

export async function removeLeftovers(): Promise<void> {
  const log = pino({ level: 'error' }, pino.destination(2))
  const found = await Promise.all([tmpdir(), MEMORY].map((parent) => foldersIn(parent)))
  for (const folder of found.flat()) {
    const lock = lockFile(join(folder, 'postgres.lock'))
    if (lock === null) continue
    try {
      const cluster = join(folder, 'postgres')
      if (existsSync(cluster)) await endProcesses(cluster, await findAccount(cluster, log), log)
      const memory = join(folder, 'keys', 'postgres-run-folder')
      if (existsSync(memory)) await rm((await readFile(memory, 'utf8')).trim(), { recursive: true, force: true })
      await rm(folder, { recursive: true, force: true })
    } finally {
      lock.release()
    }
  }
}

async function foldersIn(parent: string): Promise<string[]> {
  const names = await readdir(parent).catch(() => [])
  const folders = names.filter((name) => name.startsWith(FOLDER_PREFIX)).map((name) => join(parent, name))
  return folders.filter((folder) => existsSync(join(folder, 'postgres.lock')))
}
