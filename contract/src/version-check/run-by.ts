// Files that another program runs. Without a first line (#!) that names it, a system starts them as scripts of the shell.
import { posix } from 'node:path'

/** What stands before the file in a command line, by the ending of its name. */
const RUN_BY: Readonly<Record<string, readonly string[]>> = {
  '.js': ['node'],
  '.mjs': ['node'],
  '.cjs': ['node'],
  '.ts': ['node'],
  '.py': ['python3'],
  '.rb': ['ruby'],
  '.lua': ['lua'],
  '.pl': ['perl'],
  '.php': ['php'],
  '.jar': ['java', '-jar'],
  '.dll': ['dotnet'],
}

/** Null: nothing is known of files with such a name. */
export function runBy(path: string): readonly string[] | null {
  const ending = posix.extname(path).toLowerCase()
  return Object.hasOwn(RUN_BY, ending) ? RUN_BY[ending]! : null
}

/** The remedy as a sentence, for a file that is the first of `args`. */
export function beginWith(program: readonly string[]): string {
  return `Let args begin with ${[...program].map((word) => JSON.stringify(word)).join(', ')}, and then this file.`
}
