// Why a program that exists could not start: it is of another machine, or its interpreter, its loader or its C library is
// not there. The kernel reports all of these as "no such file" or "exec format error", without saying of what.
import { closeSync, openSync, readSync } from 'node:fs'
import { posix } from 'node:path'
import {
  fileFault,
  headFaultText,
  isElf,
  PROGRAM_HEAD_BYTES,
  readScript,
} from '../../../objects/archive/program-head.ts'
import { isNewerVersion, readElfNeeds } from './elf-file.ts'
import type { Program, ProgramFault } from './find-program.ts'

const ENV = '/usr/bin/env'
const USE_AN_IMAGE = 'or upload the server as a container image, which brings its own'

/** The files that the program will see. */
export type ProgramView = {
  /** Whether there is a file at an absolute path. */
  has: (path: string) => boolean
  /** PATH of the server. */
  search_path: string
  /** Version of the GNU C library; null: unknown, or the program brings its own. */
  glibc: string | null
  /** Where these files are: `on this machine`. */
  where: string
}

/** The program, unless it lacks what it needs. The platform's own programs and a refusal are returned unchanged. */
export function withItsNeeds(program: Program, name: string, view: ProgramView): Program {
  if ('refused' in program || program.file === null) return program
  return unmetNeed(program.file, name, view) ?? program
}

/** The same, as far as the first bytes say it. */
export function withItsHead(program: Program, name: string): Program {
  if ('refused' in program || program.file === null) return program
  const fd = openSync(program.file, 'r')
  try {
    return headRefusal(readHead(fd), name) ?? program
  } finally {
    closeSync(fd)
  }
}

/** Null when nothing speaks against a start. `file`: on this machine. `name`: as the developer wrote it. */
function unmetNeed(file: string, name: string, view: ProgramView): ProgramFault | null {
  const fd = openSync(file, 'r')
  try {
    const head = readHead(fd)
    const refusal = headRefusal(head, name)
    if (refusal !== null) return refusal
    const missing = isElf(head) ? missingOfElf(fd, view) : missingInterpreter(head, view)
    return missing === null ? null : { refused: 'missing_library', message: `${JSON.stringify(name)} ${missing}` }
  } finally {
    closeSync(fd)
  }
}

function readHead(fd: number): Buffer {
  const buffer = Buffer.alloc(PROGRAM_HEAD_BYTES)
  return buffer.subarray(0, readSync(fd, buffer, 0, PROGRAM_HEAD_BYTES, 0))
}

function headRefusal(head: Buffer, name: string): ProgramFault | null {
  const fault = fileFault(head, name, true)
  if (fault === null) return null
  return { refused: 'not_executable', message: `${JSON.stringify(name)} ${headFaultText(fault)}` }
}

function missingInterpreter(head: Buffer, { has, search_path, where }: ProgramView): string | null {
  const script = readScript(head)
  if (script === null) return null
  const { interpreter, argument } = script
  if (!posix.isAbsolute(interpreter)) return null
  const remedy = `Correct the first line, put the interpreter into the build, ${USE_AN_IMAGE}.`
  if (!has(interpreter)) return `begins with #!${interpreter}, and there is no such file ${where}. ${remedy}`
  if (interpreter !== ENV) return null
  const [program = ''] = (argument ?? '').split(/\s/, 1)
  // Options and variables of env are not read.
  if (program === '' || program.includes('/') || program.startsWith('-') || program.includes('=')) return null
  const folders = search_path.split(':')
  if (folders.some((folder) => has(posix.join('/', folder, program)))) return null
  return `begins with #!${ENV} ${program}, and there is no program ${program} ${where} (searched: ${search_path}). ${remedy}`
}

function missingOfElf(fd: number, { has, glibc, where }: ProgramView): string | null {
  const needs = readElfNeeds(fd)
  if (needs.loader !== null && !has(needs.loader)) {
    const of = needs.loader.includes('ld-musl') ? ' It was built with the C library musl, for example on Alpine.' : ''
    return `needs the loader ${needs.loader}, and there is no such file ${where}.${of} Link it statically, ${USE_AN_IMAGE}.`
  }
  if (glibc === null || needs.glibc === null || !isNewerVersion(needs.glibc, glibc)) return null
  return `needs glibc ${needs.glibc}, and there is ${glibc} ${where}. Build it on an older system, ${USE_AN_IMAGE}.`
}

let own_glibc: string | null | undefined

/** The GNU C library of this machine, as Node reports it; null where there is none. */
export function glibcOfMachine(): string | null {
  if (own_glibc !== undefined) return own_glibc
  const report = process.report as typeof process.report & { excludeNetwork: boolean }
  const { excludeNetwork } = report
  // Otherwise the report looks up the names of all open connections.
  report.excludeNetwork = true
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } }
  report.excludeNetwork = excludeNetwork
  own_glibc = header?.glibcVersionRuntime ?? null
  return own_glibc
}

/**
 * Whether a line of a lobby's output says that its program or a library of it was not found.
 * Without a regular expression: on a hostile line, one with two gaps takes time quadratic in its length.
 */
export function isAboutLibrary(text: string): boolean {
  if (text.includes('error while loading shared libraries: ')) return true
  // The loader, of a library of the build that needs a newer C library.
  if (text.includes("' not found (required by ")) return true
  if (text.startsWith('bwrap: execvp ')) return text.endsWith(': No such file or directory')
  return text.startsWith('sh: ') && text.includes(': ', 4) && text.endsWith('not found')
}
