// A folder that a build makes anew, such as `dist/programs`. The finished folder replaces the old one at once, so a program
// that starts meanwhile finds a whole one.
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'

/** What the user, the file system or its size does not allow, with the remedy. */
const OBSTACLES: Readonly<Record<string, string>> = {
  EACCES: 'run this once as the owner of the checkout, or make the folder writable',
  EROFS: 'run this once where the checkout can be written',
  ENOSPC: 'make room on its disk',
}

/**
 * `write`: writes into an empty folder, and returns the path of the finished one, which is in it or is it. `what`: begins the
 * sentence with which the process ends where `folder` cannot be written. Throws all other errors.
 */
export async function replaceFolder(
  folder: string,
  { what, write }: { what: string; write: (made: string) => Promise<string> },
): Promise<void> {
  const made = `${folder}-${process.pid}`
  const replaced = `${made}-replaced`
  try {
    mkdirSync(made, { recursive: true })
    const finished = await write(made)
    if (existsSync(folder)) renameSync(folder, replaced)
    renameSync(finished, folder)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const remedy = OBSTACLES[code]
    if (remedy === undefined) throw error
    console.error(`${what} must be built into ${folder}, which cannot be written (${code}): ${remedy}.`)
    process.exitCode = 1
  } finally {
    for (const path of [made, replaced]) rmSync(path, { recursive: true, force: true })
  }
}
