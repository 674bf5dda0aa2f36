// Where bytes lie while they come in. Each process has a folder of its own there, named by its process id and start
// time, so that whoever opens the store next can tell what a dead process has left from what a living one is writing.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readStat } from '../procfs.ts'

export type Incoming = {
  /** A path, not yet taken, that belongs to this process. */
  newPath: (key: string) => string
}

/** Makes the folder and removes what dead processes have left in it. Throws the system's error. */
export function openIncoming(folder: string): Incoming {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    if (!isAlive(name)) rmSync(join(folder, name), { recursive: true, force: true })
  }
  const own = join(folder, `${process.pid}-${readStat(process.pid)?.start_time ?? 0}`)
  let made = false
  return {
    newPath(key) {
      // Not before it is needed: most roles only read.
      if (!made) mkdirSync(own, { recursive: true, mode: 0o700 })
      made = true
      return join(own, `${key}.${randomBytes(6).toString('hex')}`)
    },
  }
}

function isAlive(name: string): boolean {
  const [, id, start] = /^(\d{1,10})-(\d{1,20})$/.exec(name) ?? []
  if (id === undefined || start === undefined) return false
  const started = readStat(Number(id))?.start_time
  if (started !== undefined || start !== '0') return started === start
  try {
    process.kill(Number(id), 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
