// Checks the program of a game mode against the files of its build. A program that is missing or not executable would only
// fail when players wait for the first lobby. Only what cannot start on any runner is refused: a name without a slash may be
// a program of the runner's machine, and a path outside the build is not checked.
import { posix } from 'node:path'
import type { ErrorDetail } from '../errors.ts'
import { beginWith, runBy } from './run-by.ts'

/** Where lobbies see their build (runner/drivers/driver.ts). */
const BUILD_MOUNT = '/build'
/** `fault`: why the machine of the platform cannot start it, after the name of the file; null: nothing is known. */
export type BuildFile = { is_executable: boolean; fault: string | null }

const REMEDY = 'Run chmod +x on it, pack the archive again, and upload it as a new build.'
const WITHOUT_MODES =
  'An archive that was packed on Windows has no such mark: there the file must be an ELF program, or begin with #!.'

/** `files`: those of the build, by path. `path` is that of `args`. */
export function checkProgram(
  args: readonly string[],
  files: ReadonlyMap<string, BuildFile>,
  path: readonly string[],
): ErrorDetail[] {
  const [program = ''] = args
  if (posix.isAbsolute(program) && !program.startsWith(`${BUILD_MOUNT}/`)) return []
  const inside = posix.isAbsolute(program) ? posix.relative(BUILD_MOUNT, program) : posix.normalize(program)
  const at = [...path, '0']
  const name = JSON.stringify(program)
  const file = files.get(inside)
  if (file !== undefined && file.fault !== null) {
    return [{ path: at, reason: 'not_runnable', message: `The file ${name} of the build ${file.fault}` }]
  }
  if (file?.is_executable === true) return []
  if (file?.is_executable === false) {
    const program_of_it = runBy(inside)
    const remedy = program_of_it === null ? `${REMEDY} ${WITHOUT_MODES}` : beginWith(program_of_it)
    const message = `The build has the file ${name}, but it is not executable. ${remedy}`
    return [{ path: at, reason: 'not_executable', message }]
  }
  const one_text = ofOneText(program)
  if (one_text !== null) return [{ path: at, reason: 'not_found', message: one_text }]
  if (!program.includes('/')) return []
  if ([...files.keys()].some((path) => path.startsWith(`${inside}/`))) {
    const message = `${name} is a folder of the build, and no program. Name a file in it.`
    return [{ path: at, reason: 'not_found', message }]
  }
  const message = `The build has no file ${name}. The path is relative to the root of the archive.${namesakes(inside, files)}`
  return [{ path: at, reason: 'not_found', message }]
}

/** For a program that does not exist: a command line in one text. Null: it has no blanks. */
export function ofOneText(program: string): string | null {
  const words = program.split(' ').filter((word) => word !== '')
  if (words.length < 2) return null
  const list = words.map((word) => JSON.stringify(word)).join(', ')
  return `No program has the name ${JSON.stringify(program)}. args is a list with one entry for each word: [${list}].`
}

/** Files of the same name elsewhere in the build, as a sentence with a space before it. */
function namesakes(path: string, files: ReadonlyMap<string, BuildFile>): string {
  const name = posix.basename(path)
  const found = [...files.keys()].find((file) => posix.basename(file) === name)
  return found === undefined ? '' : ` It has ${JSON.stringify(found)}.`
}
