// Finds the program of a container image in its root folder, as the sandbox would: links lead from the root of the image,
// never to files of the machine.
import { lstatSync, readlinkSync, type Stats } from 'node:fs'
import { join, posix } from 'node:path'
import { codeOf } from '../../../node/procfs.ts'
import type { Program, ProgramFault } from './find-program.ts'

/** Links on the way to one program, as in Linux. */
const LINKS_MAX = 40
/** Folders of PATH that are searched. */
const FOLDERS_MAX = 64

/** `search_path`: the PATH of the server. */
export function findImageProgram(root: string, working_folder: string, search_path: string, name: string): Program {
  let is_found = false
  const folders = name.includes('/') ? [''] : search_path.split(':').slice(0, FOLDERS_MAX)
  for (const folder of folders) {
    const path = posix.resolve(working_folder, folder, name)
    const found = findInside(root, path)
    if (found === null || !found.stats.isFile()) continue
    if ((found.stats.mode & 0o001) !== 0) return { command: path, file: found.file }
    is_found = true
  }
  return is_found ? notExecutableInImage(name) : notInImage(name)
}

export function notExecutableInImage(name: string): ProgramFault {
  return {
    refused: 'not_executable',
    message: `${JSON.stringify(name)} exists in the image, but is not executable. Run chmod +x on it in the Dockerfile.`,
  }
}

export function notInImage(name: string): ProgramFault {
  const message = `${JSON.stringify(name)}, the program to start, is not in the image. Correct args, or the entrypoint of the image.`
  return { refused: 'no_such_file', message }
}

export function noWorkingFolder(path: string): ProgramFault {
  const message = `${JSON.stringify(path)}, the working folder, is not a folder of the image. Correct working_folder.`
  return { refused: 'no_such_file', message }
}

/** Whether a server can start there. */
export function isImageFolder(root: string, path: string): boolean {
  return namesOf(path).length === 0 || findInside(root, path)?.stats.isDirectory() === true
}

/** Whether a server of the image has a file at this absolute path. */
export function isImageFile(root: string, path: string): boolean {
  return findInside(root, path)?.stats.isFile() === true
}

/** Null when there is nothing at this path. `file`: the path on this machine, without links. */
function findInside(root: string, path: string): { file: string; stats: Stats } | null {
  const names = namesOf(path)
  let at: string[] = []
  for (let links = 0; names.length > 0; ) {
    const name = names.shift()!
    if (name === '..') {
      at = at.slice(0, -1)
      continue
    }
    const stats = lstatOrNull(join(root, ...at, name))
    if (stats === null) return null
    if (!stats.isSymbolicLink()) {
      at.push(name)
      if (names.length === 0) return { file: join(root, ...at), stats }
      if (!stats.isDirectory()) return null
      continue
    }
    if (++links > LINKS_MAX) return null
    const target = readlinkSync(join(root, ...at, name))
    if (posix.isAbsolute(target)) at = []
    names.unshift(...namesOf(target))
  }
  return null
}

function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'EACCES'].includes(codeOf(error) ?? '')) return null
    throw error
  }
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
