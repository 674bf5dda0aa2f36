// A project: a folder with a muster.yaml. The file is read whole, and is refused with every mistake at once.
import { readFileSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { type ErrorDetail, replacedDockerMembers, shellWords, type VersionConfig } from '@musterhost/contract'
import type { ProjectOwnMembers } from '@musterhost/contract/project-config'
import { EXIT, Failure, type FailureDetail } from '../failure.ts'
import { findProjectFile } from './address.ts'
import { checkProjectText, type ProjectFault, SOME_ID, versionOf } from './check.ts'
import { completeVersion } from './complete.ts'
import type { Position } from './document.ts'

/** Bytes of a muster.yaml. */
const FILE_BYTES_MAX = 256 * 1024

export type ProjectFolder = {
  /** Absolute. The build command may create it. */
  folder: string
  /** A shell command that runs in the folder of the file. Null: none. */
  build: string | null
  ignore: readonly string[]
}

/** `image`: absolute path of a file, or of an OCI layout. The build command may create it. */
export type ProjectImage = { image: string; build: string | null }

export type Project = {
  /** Absolute path of muster.yaml. */
  file: string
  /** Absolute path of its folder. */
  folder: string
  game: string | null
  namespace: string | null
  url: string | null
  /** Null: the version has no lobbies. */
  server: ProjectFolder | ProjectImage | null
  /** Null: the version has no page. */
  site: ProjectFolder | null
  /** Without the ids of the build and the site. */
  version: VersionConfig
  /** Where a member of the file stands. The nearest member around it when it does not exist. */
  locate(path: readonly string[]): Position
}

export type ProjectCheck = { file: string; project: Project | null; faults: ProjectFault[] }

/** `file`: null for the muster.yaml of this folder, or of the nearest one above it. Throws a Failure when there is none. */
export function checkProject(cwd: string, file: string | null = null): ProjectCheck {
  const path = file === null ? findProjectFile(cwd) : resolve(cwd, file)
  if (path === null) {
    throw new Failure(`There is no muster.yaml in ${cwd}, nor in a folder above it.`, {
      exit_code: EXIT.usage,
      remedy: 'muster init writes one, with a game that works.',
    })
  }
  const folder = dirname(path)
  const { config, faults, document } = checkProjectText(readText(path), folder)
  if (config === null) return { file: path, project: null, faults }
  const { game = null, namespace = null, url = null, server, site } = config
  const project: Project = {
    ...{ file: path, folder, game, namespace, url },
    server: server === undefined ? null : serverOf(server, folder),
    site: site === undefined ? null : folderOf(site, folder),
    version: versionOf(config),
    locate: (member) => document.positions.of(member),
  }
  return { file: path, project, faults }
}

/** As checkProject, and throws a Failure with all mistakes of the file. */
export function readProject(cwd: string, file: string | null = null): Project {
  const check = checkProject(cwd, file)
  if (check.project !== null) return check.project
  throw faultsFailure(check)
}

/** Members of `matchmaker.docker` that do not apply to a game mode. */
export function replacedMembers(project: Project): (Position & { path: string[]; message: string })[] {
  const { locate } = project
  const { matchmaker } = completeVersion(project.version, {
    build_id: project.server === null ? null : SOME_ID,
    site_id: null,
  })
  if (matchmaker === undefined) return []
  return replacedDockerMembers(matchmaker).map((one) => ({ ...one, ...locate(one.path) }))
}

/** Arguments that are meant for a shell. They are no mistakes: a server may want such a text. */
export function shellWordsOf({ version, locate }: Project): (Position & { path: string[]; message: string })[] {
  return shellWords(version).map((one) => ({ ...one, ...locate(one.path) }))
}

export function faultsFailure({ file, faults }: Pick<ProjectCheck, 'file' | 'faults'>): Failure {
  const count = faults.length === 1 ? 'a mistake' : `${faults.length} mistakes`
  return new Failure(`${file} has ${count}:`, { exit_code: EXIT.usage, details: faults.map(detailOf) })
}

function detailOf({ path, line, column, message, remedy }: ProjectFault): FailureDetail {
  return { path: path.join('.') || 'file', line, column, message: `${message} ${remedy}` }
}

/** Field errors of the platform with their lines in the file. */
export function locateErrors(project: Project, errors: readonly ErrorDetail[]): FailureDetail[] {
  return errors.map(({ path, message }) => {
    const member = path[0] === 'config' ? path.slice(1) : path
    return { path: member.join('.') || 'file', ...project.locate(member), message }
  })
}

function readText(file: string): string {
  const name = basename(file)
  try {
    const { size } = statSync(file)
    if (size > FILE_BYTES_MAX) {
      throw new Failure(`${file} has ${size} bytes, and a ${name} has at most ${FILE_BYTES_MAX}.`, {
        exit_code: EXIT.usage,
      })
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof Failure) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new Failure(`${file} is not UTF-8 text.`, { exit_code: EXIT.usage, cause: error })
    }
    if (code === 'ENOENT') {
      throw new Failure(`${file} does not exist.`, { exit_code: EXIT.usage, cause: error })
    }
    throw new Failure(`${file} cannot be read: ${(error as Error).message}`, { exit_code: EXIT.usage, cause: error })
  }
}

function serverOf(section: NonNullable<ProjectOwnMembers['server']>, root: string): ProjectFolder | ProjectImage {
  if (section.image === undefined) return folderOf(section, root)
  return { image: resolve(root, section.image), build: section.build ?? null }
}

function folderOf(section: NonNullable<ProjectOwnMembers['site']>, root: string): ProjectFolder {
  return { folder: resolve(root, section.folder ?? '.'), build: section.build ?? null, ignore: section.ignore ?? [] }
}
