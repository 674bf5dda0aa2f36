// A file that the first process makes and all others read.
import { randomBytes } from 'node:crypto'
import { linkSync, rmSync, writeFileSync } from 'node:fs'

/** Makes the file, for its owner only, unless there is one. It appears whole: making its link fails for all processes but the first. */
export function placeFile(path: string, content: string | Buffer): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(draft, content, { mode: 0o600, flush: true })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
