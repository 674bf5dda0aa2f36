// Where args[0] is: in the build first, then among the platform's own programs, then among the host's. Looked up before
// the start, because "there is no such file" said by a shell inside of a sandbox explains nothing to a developer.
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { codeOf } from '../../procfs.ts'
import type { ExitReason } from './driver.ts'

/** The programs of the host that lobbies find, in this order. */
export const HOST_PROGRAM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin'] as const
const HOST_FOLDERS = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib64/'] as const

export type Program = { command: string } | { refused: ExitReason; message: string }

/** `mounted_at` is where the build is in the eyes of the lobby. `command` is a path for execve, or `node`. */
export function findProgram(build_folder: string, mounted_at: string, name: string): Program {
  if (isAbsolute(name) && HOST_FOLDERS.some((folder) => name.startsWith(folder))) return check(name, name, name)
  const inside = isAbsolute(name) ? relative(mounted_at, name) : name
  const path = resolve(build_folder, inside)
  if (isBeneath(build_folder, path) && kindOf(path) !== 'nothing') {
    if (!isBeneath(realpathSync(build_folder), realpathSync(path))) return notFound(name)
    return check(path, join(mounted_at, relative(build_folder, path)), name)
  }
  if (name.includes('/')) return notFound(name)
  if (name === 'node') return { command: 'node' }
  const found = HOST_PROGRAM_FOLDERS.map((folder) => join(folder, name)).find((path) => kindOf(path) === 'file')
  return found === undefined ? notFound(name) : check(found, found, name)
}

function check(path: string, command: string, name: string): Program {
  if (kindOf(path) !== 'file') return notFound(name)
  try {
    accessSync(path, constants.X_OK)
    return { command }
  } catch {
    return { refused: 'not_executable', message: `${JSON.stringify(name)} is there, but is not executable.` }
  }
}

function notFound(name: string): Program {
  const message = `${JSON.stringify(name)}, the first of args, is neither a file of the build nor a program that is there.`
  return { refused: 'no_such_file', message }
}

function kindOf(path: string): 'file' | 'other' | 'nothing' {
  try {
    return statSync(path).isFile() ? 'file' : 'other'
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'].includes(codeOf(error) ?? '')) return 'nothing'
    throw error
  }
}

function isBeneath(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way)
}
