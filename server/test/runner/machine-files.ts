// The files of the machine that no lobby may touch, with their metadata. Other tests run beside this one, so folders that they
// use are only searched for files of lobbies' users.
import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { UID_COUNT, UID_FIRST } from '../../src/runner/drivers/uids.ts'

/** Compared as they are. */
const FIXED = ['/etc', '/usr/local'] as const
/** Writable for every user, and shared with other tests. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/run', '/var/lib', '/home', '/srv'] as const
const FIXED_DEPTH_MAX = 16
/** The data folders of other tests lie deeper. */
const SHARED_DEPTH_MAX = 2
const FILES_MAX = 500_000

/** A line for each file: owner, mode, size and time of change, or its owner alone. */
export function machineFiles(): string[] {
  const found: string[] = []
  for (const path of FIXED) {
    walk(path, FIXED_DEPTH_MAX, (file, { uid, gid, mode, size, ctimeMs }) => {
      found.push([file, uid, gid, mode.toString(8), size, ctimeMs].join(' '))
      if (found.length > FILES_MAX) throw new Error(`more than ${FILES_MAX} files in ${FIXED.join(' and ')}`)
    })
  }
  for (const path of SHARED) {
    walk(path, SHARED_DEPTH_MAX, (file, { uid }) => {
      if (uid >= UID_FIRST && uid < UID_FIRST + UID_COUNT) found.push(`${file} of the lobby user ${uid}`)
    })
  }
  return found.sort()
}

type Stats = ReturnType<typeof lstatSync> & object

function walk(folder: string, depth_max: number, onFile: (path: string, stats: Stats) => void): void {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name)
    // Files of other tests come and go.
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) continue
    onFile(path, stats)
    if (entry.isDirectory() && depth_max > 1) walk(path, depth_max - 1, onFile)
  }
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    // It is missing, or gone meanwhile.
    return []
  }
}
