// What test runs that were killed left behind: a PostgreSQL that lives on, and its folders. The next run ends and
// removes it. A folder whose lock is held belongs to a run that lives.
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { findAccount } from '../src/database/embedded/account.ts'
import { lockFile } from '../src/database/embedded/lock.ts'
import { endProcesses } from '../src/database/embedded/processes.ts'

export const FOLDER_PREFIX = 'muster-test-'

export async function removeLeftovers(): Promise<void> {
  const log = pino({ level: 'error' }, pino.destination(2))
  for (const name of await readdir(tmpdir())) {
    const folder = join(tmpdir(), name)
    if (!name.startsWith(FOLDER_PREFIX) || !existsSync(join(folder, 'postgres.lock'))) continue
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
