// A disk that is really small: a tmpfs mounted on its own folder, which needs root. The caller unmounts it after all
// processes have closed their files there.
import { execFile } from 'node:child_process'
import { mkdtemp, open, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { lacking } from '../run/optional-programs.ts'

const run = promisify(execFile)
/** A write that does not fit whole is written up to the last free page. */
const BALLAST = Buffer.alloc(2 ** 20)

export type SmallDisk = {
  folder: string
  /** Writes a file that leaves so much free, instead of the one before. */
  leave: (free_bytes: number) => Promise<void>
  /** Writes that file until not a byte is free. */
  fill: () => Promise<void>
  /** Removes that file. */
  empty: () => Promise<void>
  unmount: () => Promise<void>
}

/** Null: it cannot be mounted here, and the test has been skipped aloud. */
export async function mountSmallDisk(t: Pick<TestContext, 'skip'>, disk_bytes: number): Promise<SmallDisk | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    t.skip(lacking('root')!)
    return null
  }
  const folder = await mkdtemp(join(tmpdir(), 'muster-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${disk_bytes}`, 'tmpfs', folder])
  } catch (error) {
    await rm(folder, { recursive: true })
    t.skip(`needs mounts: ${(error as Error).message}`)
    return null
  }
  const ballast = join(folder, 'ballast')
  const empty = (): Promise<void> => rm(ballast, { force: true })
  return {
    folder,
    empty,
    async leave(free_bytes) {
      await empty()
      const { bavail, bsize } = await statfs(folder)
      await writeFile(ballast, Buffer.alloc(bavail * bsize - free_bytes))
    },
    async fill() {
      const file = await open(ballast, 'a')
      try {
        for (;;) await file.appendFile(BALLAST)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        await file.close()
      }
    },
    async unmount() {
      await run('umount', [folder])
      await rm(folder, { recursive: true })
    },
  }
}
