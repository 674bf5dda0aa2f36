// Adopts the runs of this data folder that were started under another name of the runner. A runner is named by its host
// and its folder. Both may be renamed while it is off, and the rows of its runs keep the former name. So the folder stores
// the name in use. The lock on the folder makes its holder the only runner of that name.
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { adoptRuns } from './rows.ts'

const NAME_FILE = 'runner-name'

/**
 * Changes the open runs of the former name to the current one, then stores the current name. A crash in between repeats
 * both. Called before the first start under the new name.
 */
export async function adoptRenamedRuns(ctx: Context): Promise<void> {
  const { data_dir, node_id } = ctx.config
  const path = join(data_dir, NAME_FILE)
  const former = await readName(path)
  if (former === node_id) return
  if (former !== null) {
    const run_count = await adoptRuns(ctx, former)
    ctx.log.info({ former, run_count }, 'runner renamed; runs of the former name adopted')
  }
  await writeFile(`${path}.new`, node_id, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/** Null: the folder is new. */
async function readName(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
