// What the files of an upload may be called. A path is data: it is stored in a row and never becomes part of a path on
// this machine. But people unpack sites on theirs, and browsers ask for them, so it must mean the same everywhere.
import { type ErrorDetail, hasControlCharacters, UPLOAD_PATH_BYTES_MAX } from '@musterhost/contract'

/** A mistake of one path is enough to refuse the upload; a few more help to see the pattern. */
const ERRORS_MAX = 32

/** `prefix` is where the list of files stands in the body; with one file that is not in a list, where the file stands. */
export function checkPaths(paths: readonly string[], pathOf: (index: number) => string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  const seen = new Map<string, string>()
  for (const [index, path] of paths.entries()) {
    if (errors.length === ERRORS_MAX) break
    const mistake = mistakeOf(path) ?? twinOf(path, seen)
    if (mistake !== null) errors.push({ path: pathOf(index), ...mistake })
  }
  return errors
}

type Mistake = { reason: string; message: string }

/** Null when a file may be called so. */
export function mistakeOf(path: string): Mistake | null {
  const name = JSON.stringify(path.length > 80 ? `${path.slice(0, 80)}…` : path)
  if (path === '') return { reason: 'too_short', message: 'A path is empty.' }
  if (Buffer.byteLength(path) > UPLOAD_PATH_BYTES_MAX) {
    return { reason: 'too_long', message: `${name} is longer than ${UPLOAD_PATH_BYTES_MAX} bytes.` }
  }
  if (hasControlCharacters(path))
    return { reason: 'control_character', message: `${name} contains control characters.` }
  if (path.normalize('NFC') !== path) {
    const message = `${name} is not in Unicode normal form C. Normalise the name before the upload, as muster deploy does.`
    return { reason: 'not_normalized', message }
  }
  if (path.includes('\\')) return { reason: 'backslash', message: `${name} contains a backslash; folders end with /.` }
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path))
    return { reason: 'absolute', message: `${name} is not relative.` }
  if (path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return { reason: 'segment', message: `${name} has a segment that is empty, . or ...` }
  }
  return null
}

/** Remembers the path. Two that differ only in upper and lower case are one file on many machines. */
function twinOf(path: string, seen: Map<string, string>): Mistake | null {
  const folded = path.toUpperCase().toLowerCase().normalize('NFC')
  const twin = seen.get(folded)
  if (twin === undefined) {
    seen.set(folded, path)
    return null
  }
  if (twin === path) return { reason: 'not_unique', message: `${JSON.stringify(path)} is there twice.` }
  return { reason: 'not_unique', message: `${JSON.stringify(path)} and ${JSON.stringify(twin)} differ only in case.` }
}
