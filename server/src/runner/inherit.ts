// The runs of this data folder from a time in which the runner had another name. A runner is named by its host and its
// folder; both may be renamed while it is off, and what ran then bears the name of then. So the folder keeps the name in
// use. Whoever holds the folder's lock is its only runner: the one of that name is this one, or is gone.
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { inheritRuns } from './rows.ts'

const NAME_FILE = 'runner-name'

/**
 * Makes open runs of the folder's former name this runner's own, to be settled like any other of its own. The name is
 * kept once they are: a crash in between does it again. Before anything is started under the new name.
 */
export async function inheritFormerRuns(ctx: Context): Promise<void> {
  const { data_dir, node_id } = ctx.config
  const path = join(data_dir, NAME_FILE)
  const former = await readName(path)
  if (former === node_id) return
  if (former !== null) {
    const run_count = await inheritRuns(ctx, former)
    ctx.log.info({ former, run_count }, 'the runner has another name than before; what ran is taken over')
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
