// The folder of bytes that are being received. Each process has its own folder in it, named by its process id and start
// time. So a process that opens the store can remove the files of dead processes and keep those of living ones.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readStat } from '../node/procfs.ts'

export type Incoming = {
  /** A new path in the folder of this process. */
  newPath: (key: string) => string
}

/** Makes the folder and removes the files of dead processes. Throws the system's error. */
export function openIncoming(folder: string): Incoming {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    if (!isAlive(name)) rmSync(join(folder, name), { recursive: true, force: true })
  }
  const own = join(folder, `${process.pid}-${readStat(process.pid)?.start_time ?? 0}`)
  let made = false
  return {
    newPath(key) {
      // Made when it is first needed, because most roles only read.
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
