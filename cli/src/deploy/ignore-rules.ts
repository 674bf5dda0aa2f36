// What is left out of an upload. Three lists of gitignore patterns, the last match wins: the list below, `.musterignore` in the
// folder, and `ignore` of muster.yaml. `.gitignore` is not read, because builds and installed packages are listed there.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { EXIT, Failure } from '../failure.ts'
import { isMissing } from './file-errors.ts'

const IGNORE_FILE = '.musterignore'
/** Patterns that hold in every folder. A later `!PATTERN` includes such files again. */
const ALWAYS_IGNORED: readonly string[] = [
  '.git',
  '.hg',
  '.svn',
  '.DS_Store',
  '.muster',
  '.env',
  '.env.*',
  '.npmrc',
  IGNORE_FILE,
  '/muster.yaml',
  '/muster.yml',
  '/muster.json',
  '/muster.schema.json',
]
/** Bytes of `.musterignore`. */
const IGNORE_FILE_BYTES_MAX = 256 * 1024

export type IgnoreRules = { isIgnored(path: string, is_folder: boolean): boolean }

/** `path` of isIgnored: relative to the folder, with `/`. The Unicode forms of paths and patterns may differ. */
export function readIgnoreRules(folder: string, patterns: readonly string[]): IgnoreRules {
  const rules: Ignore = ignore()
    .add([...ALWAYS_IGNORED])
    .add(readIgnoreFile(folder).normalize('NFC'))
    .add(patterns.map((pattern) => pattern.normalize('NFC')))
  return { isIgnored: (path, is_folder) => rules.ignores((is_folder ? `${path}/` : path).normalize('NFC')) }
}

function readIgnoreFile(folder: string): string {
  const file = join(folder, IGNORE_FILE)
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length <= IGNORE_FILE_BYTES_MAX) return text
  } catch (error) {
    if (isMissing(error)) return ''
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  throw new Failure(`${file} is longer than ${IGNORE_FILE_BYTES_MAX} bytes.`, { exit_code: EXIT.usage })
}
