// Finds the program args[0]: in the build first, then among the platform's programs, then among the host's. It is searched
// before the start, because "no such file" from a shell inside a sandbox does not help a developer.
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { beginWith, ofOneText, runBy } from '@musterhost/contract/version-check'
import { codeOf } from '../../../node/procfs.ts'
import type { ExitReason } from '../driver.ts'

/** Folders of the host's programs, in the order of the search. Games of a distribution are in folders of their own. */
export const HOST_PROGRAM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/games', '/usr/games'] as const
const HOST_FOLDERS = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib64/'] as const

export type ProgramFault = { refused: ExitReason; message: string }
/** `command`: a path for execve, or `node`. `file`: the program on this machine; null for the platform's own. */
export type Program = { command: string; file: string | null } | ProgramFault

/** `mounted_at`: the path of the build inside the sandbox. */
export function findProgram(build_folder: string, mounted_at: string, name: string): Program {
  if (isAbsolute(name) && HOST_FOLDERS.some((folder) => name.startsWith(folder))) return check(name, name, name)
  const in_build = findInBuild(build_folder, mounted_at, name)
  if (in_build !== null) return in_build
  if (name.includes('/')) return notFound(name)
  if (name === 'node') return { command: 'node', file: null }
  const found = HOST_PROGRAM_FOLDERS.map((folder) => join(folder, name)).find((path) => kindOf(path) === 'file')
  return found === undefined ? notFound(name) : check(found, found, name)
}

/** Null where the build has no such file. */
export function findInBuild(build_folder: string, mounted_at: string, name: string): Program | null {
  const inside = isAbsolute(name) ? relative(mounted_at, name) : name
  const path = resolve(build_folder, inside)
  if (isBeneath(build_folder, path) && kindOf(path) !== 'nothing') {
    if (!isBeneath(realpathSync(build_folder), realpathSync(path))) return notFound(name)
    return check(path, join(mounted_at, relative(build_folder, path)), name)
  }
  return null
}

function check(path: string, command: string, name: string): Program {
  if (kindOf(path) !== 'file') return notFound(name)
  try {
    accessSync(path, constants.X_OK)
    return { command, file: path }
  } catch {
    return notExecutable(name)
  }
}

export function notExecutable(name: string): ProgramFault {
  const program = runBy(name)
  const remedy = program === null ? '' : ` ${beginWith(program)}`
  return { refused: 'not_executable', message: `${JSON.stringify(name)} exists, but is not executable.${remedy}` }
}

/** `elsewhere`: where else a name without a slash was searched. */
export function notFound(name: string, elsewhere = `in ${HOST_PROGRAM_FOLDERS.join(', ')}`): ProgramFault {
  const one_text = ofOneText(name)
  if (one_text !== null) return { refused: 'no_such_file', message: one_text }
  const places = isAbsolute(name)
    ? 'at this path'
    : name.includes('/')
      ? 'in the build'
      : `in the build, and ${elsewhere}`
  const message = `${JSON.stringify(name)}, the program to start, was not found. It was searched ${places}. Correct args, or put the program into the build.`
  return { refused: 'no_such_file', message }
}

/**
 * Whether a server that sees the build at `mounted_at` has a file at this absolute path. `sees_machine`: it sees all files of
 * the machine, not only programs and libraries.
 */
export function hasFile(build_folder: string, mounted_at: string, sees_machine: boolean, path: string): boolean {
  const inside = relative(mounted_at, path)
  const in_build = join(build_folder, inside)
  if (isBeneath(build_folder, in_build)) return kindOf(in_build) === 'file'
  return (sees_machine || HOST_FOLDERS.some((folder) => path.startsWith(folder))) && kindOf(path) === 'file'
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
  const inside = relative(folder, path)
  return inside !== '' && inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside)
}
