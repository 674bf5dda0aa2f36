// A lock on a file that the kernel holds for us and drops when we die, however we die. Node cannot ask for one, but
// such a lock belongs to the open file and not to the process: the system's `flock` program takes it on a file that we
// opened, and ends; the lock stays until we close the file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { PROGRAM_ENVIRONMENT } from './program.ts'

const BUSY = 1

/** Null when somebody else holds it. Where there is no `flock` (macOS) nothing is locked, and everybody gets it. */
export async function lockFile(path: string): Promise<{ release: () => Promise<void> } | null> {
  const file = await open(path, 'a', 0o600)
  const lock = { release: () => file.close() }
  try {
    const child = spawn('flock', ['--nonblock', '3'], {
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'ignore', file.fd],
    })
    const [code] = await once(child, 'exit')
    if (code === 0) return lock
    await file.close()
    if (code === BUSY) return null
    throw new Error(`flock ended with ${code}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return lock
    throw error
  }
}
