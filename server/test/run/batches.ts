// Test files that share a process. To load the platform and to run it for the first time costs a process seconds, so a whole
// run has tens of processes instead of hundreds. In a batch each file is a suite with the path of the file as its name, and
// the suites run one after another. A long proof has a process of its own, and so has a file that examines its own process. A
// proof that promises a time runs while no other file does.
import { readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { FILE_MS_MAX } from './limits.ts'

/** How the names of the long proofs end. */
export const LONG_ENDING = '.long.test.ts'
/** The event of a batch's process after its last file. */
export const BATCH_END = 'batch end'
const BATCH_FILES_MAX = 20
/** Files of a batch that runs last. While the last one of all runs, another processor is idle. */
const LAST_BATCH_FILES_MAX = 10
/** One in so many files is in the last batches. */
const LAST_FILES_STEP = 4
const PROCESSOR_TIME = pathToFileURL(join(import.meta.dirname, 'processor-time.ts')).href
/** The line of a test file that says why it has a process of its own. */
const ALONE = /^\/\/ Runs in a process of its own: /m
/** The line of a test file that says why no other file may run meanwhile. */
const UNDISTURBED = /^\/\/ Runs while no other file does: /m
const BATCH = /(^|\/)batch-\d{3}\.test\.mjs$/

export function isBatch(path: string): boolean {
  return BATCH.test(path)
}

/** What the runner starts as one process. `is_undisturbed`: while no other entry runs. */
export type Entry = { path: string; is_undisturbed: boolean }

/**
 * Writes an entry for each process into `folder`. The runner starts them in this order: files that have a process of their own
 * are the slow ones, and short batches at the end leave no processor idle.
 */
export async function writeBatches(files: readonly string[], folder: string): Promise<Entry[]> {
  const entries: Entry[] = []
  for (const { paths, is_undisturbed } of planBatches(await readFiles(files))) {
    const path = join(folder, `batch-${String(entries.length).padStart(3, '0')}.test.mjs`)
    await writeFile(path, entryOf(paths))
    entries.push({ path, is_undisturbed })
  }
  return entries
}

type TestFile = { path: string; is_alone: boolean; is_undisturbed: boolean }
type Batch = { paths: string[]; is_undisturbed: boolean }

export function planBatches(files: readonly TestFile[]): Batch[] {
  const alone = files.filter(({ is_alone }) => is_alone)
  const shared = files.filter(({ is_alone }) => !is_alone).map(({ path }) => path)
  const isLast = (index: number): boolean => shared.length > BATCH_FILES_MAX && index % LAST_FILES_STEP === 0
  return [
    ...alone.map(({ path, is_undisturbed }) => ({ paths: [path], is_undisturbed })),
    ...divide(
      shared.filter((_path, index) => !isLast(index)),
      BATCH_FILES_MAX,
    ),
    ...divide(
      shared.filter((_path, index) => isLast(index)),
      LAST_BATCH_FILES_MAX,
    ),
  ]
}

/** Neighbours take equally long, so each batch gets files of every folder. */
function divide(paths: readonly string[], files_max: number): Batch[] {
  const count = Math.ceil(paths.length / files_max)
  return Array.from({ length: count }, (_, first) => ({
    paths: paths.filter((_path, index) => index % count === first),
    is_undisturbed: false,
  }))
}

export async function readFiles(files: readonly string[]): Promise<TestFile[]> {
  return Promise.all(
    files.map(async (path) => {
      const text = await readFile(path, 'utf8')
      const is_undisturbed = UNDISTURBED.test(text)
      return { path, is_alone: path.endsWith(LONG_ENDING) || is_undisturbed || ALONE.test(text), is_undisturbed }
    }),
  )
}

/**
 * A suite ends before the next one begins. It needs a limit of its own, because it would get that of a test. What nobody
 * caught by then fails the file, and not the whole batch.
 */
function entryOf(files: readonly string[]): string {
  return `import { suite, test } from 'node:test'
import { recordFile } from ${JSON.stringify(PROCESSOR_TIME)}
for (const [name, url] of ${JSON.stringify(files.map((path) => [relative('.', path), pathToFileURL(path).href]))}) {
  await suite(name, { timeout: ${FILE_MS_MAX} }, () => import(url))
  recordFile(name)
  if (process.exitCode === undefined) continue
  process.exitCode = undefined
  await test('an error that nobody caught', () => { throw new Error('It is printed above.') })
}
process.emit(${JSON.stringify(BATCH_END)})
`
}
