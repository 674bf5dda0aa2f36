// Errors of files, as failures that name the file and the remedy.
import { Failure } from '../failure.ts'

export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT'
}

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

/** `path`: the file as the user knows it. */
export function unreadable(path: string, error: unknown): Failure {
  const code = codeOf(error)
  if (code === 'ENOENT') return changed(path)
  if (code === 'EACCES' || code === 'EPERM') {
    return new Failure(`${path} cannot be read: permission denied.`, {
      remedy: `Make it readable, or leave it out with a line in .musterignore.`,
      cause: error,
    })
  }
  return new Failure(`${path} cannot be read: ${(error as Error).message}`, { cause: error })
}

export function changed(path: string): Failure {
  return new Failure(`${path} changed while it was read.`, {
    remedy: 'Wait until nothing writes there, and deploy again. Files that have arrived are not sent again.',
  })
}
