// What the first bytes of a file say about the machine that can run it. A name or a mode says nothing about that.

import { beginWith, runBy } from '@musterhost/contract/version-check'

/** The kernel reads this much of a file to decide how to run it. */
export const PROGRAM_HEAD_BYTES = 256

/** Names of ELF machines in the words of container images. */
const ELF_MACHINES: ReadonlyMap<number, string> = new Map([
  [3, '386'],
  [8, 'mips'],
  [20, 'ppc'],
  [21, 'ppc64le'],
  [22, 's390x'],
  [40, 'arm'],
  [62, 'amd64'],
  [183, 'arm64'],
  [243, 'riscv64'],
  [258, 'loong64'],
])
/** Machines whose programs each architecture of Node runs, its own first. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  x64: ['amd64', '386'],
  arm64: ['arm64', 'arm'],
}
const ELF = '\x7fELF'
const ELF_MACHINE_AT = 18
const ELF_IS_LITTLE_ENDIAN_AT = 5
const WINDOWS = 'MZ'
const MACOS = new Set(['cffaedfe', 'cefaedfe'])
/** A program of macOS for several machines. A class of Java begins with the same bytes, and has a larger number next. */
const MACOS_UNIVERSAL = 'cafebabe'
const MACOS_PROGRAMS_MAX = 30
const ZIP = 'PK\x03\x04'
const GODOT_PACK = 'GDPC'
const BYTE_ORDER_MARK = '\xef\xbb\xbf'

/**
 * Why no machine of this architecture starts the file: `elf:<machine>` is a program of another one, and `run_by:<program>` is
 * no program of its own.
 */
export type HeadFault =
  | `elf:${string}`
  | `run_by:${string}`
  | 'carriage_return'
  | 'byte_order_mark'
  | 'windows'
  | 'macos'
  | 'zip'
  | 'godot_pack'

export type Script = { interpreter: string; argument: string | null }

export function isElf(head: Buffer): boolean {
  return head.toString('latin1', 0, ELF.length) === ELF
}

/** The first line of a script. Null: it does not begin with `#!`, or names no interpreter. */
export function readScript(head: Buffer): Script | null {
  const text = head.toString('latin1')
  if (!text.startsWith('#!')) return null
  const line = text.slice(2).split('\n', 1)[0]!.trim()
  const blank = line.search(/[ \t]/)
  const interpreter = blank === -1 ? line : line.slice(0, blank)
  if (interpreter === '') return null
  return { interpreter, argument: blank === -1 ? null : line.slice(blank).trim() }
}

/** Null when the first bytes say nothing against a start. `arch`: as Node names it. */
export function headFault(head: Buffer, arch: string = process.arch): HeadFault | null {
  const text = head.toString('latin1')
  if (isElf(head)) return elfFault(head, arch)
  if (text.startsWith(WINDOWS)) return 'windows'
  if (isOfMacos(head)) return 'macos'
  if (text.startsWith(ZIP)) return 'zip'
  if (text.startsWith(GODOT_PACK)) return 'godot_pack'
  if (text.startsWith(`${BYTE_ORDER_MARK}#!`)) return 'byte_order_mark'
  if (!text.startsWith('#!')) return null
  return text.split('\n', 1)[0]!.endsWith('\r') ? 'carriage_return' : null
}

/**
 * The same, with what the name of the file says: one that another program runs has no head of its own. A file that is not
 * executable has no such fault, because that is the first thing to say.
 */
export function fileFault(head: Buffer, path: string, is_executable: boolean): HeadFault | null {
  const fault = headFault(head)
  const program = runBy(path)
  const is_script = head.toString('latin1', 0, 2) === '#!' || fault === 'byte_order_mark'
  if (program === null || isElf(head) || is_script) return fault
  return is_executable || fault !== null ? `run_by:${program.join(' ')}` : null
}

function isOfMacos(head: Buffer): boolean {
  const magic = head.toString('hex', 0, 4)
  if (magic !== MACOS_UNIVERSAL) return MACOS.has(magic)
  return head.length >= 8 && head.readUInt32BE(4) <= MACOS_PROGRAMS_MAX
}

function elfFault(head: Buffer, arch: string): HeadFault | null {
  const runs = RUNS[arch]
  if (head.length < ELF_MACHINE_AT + 2 || runs === undefined) return null
  const is_little_endian = head[ELF_IS_LITTLE_ENDIAN_AT] === 1
  const number = is_little_endian ? head.readUInt16LE(ELF_MACHINE_AT) : head.readUInt16BE(ELF_MACHINE_AT)
  const machine = ELF_MACHINES.get(number) ?? `machine ${number}`
  return is_little_endian && runs.includes(machine) ? null : `elf:${machine}`
}

const SENTENCES: Readonly<Record<string, string>> = {
  carriage_return:
    'has a first line (#!) that ends in CR LF. Save it with the line ends of Linux: dos2unix, or eol=lf in .gitattributes.',
  byte_order_mark: 'has a byte order mark before its first line (#!). Save it as UTF-8 without a byte order mark.',
  windows: 'is a program of Windows, and lobbies run on Linux. Export or build the server for Linux.',
  zip: 'is a zip archive, and no program. Unpack it, and name the program in it.',
  godot_pack:
    'is a pack of Godot, and no program. Export the server with its program for Linux, and start that: with --main-pack and this file where both are separate.',
  macos: 'is a program of macOS, and lobbies run on Linux. Export or build the server for Linux.',
}

const RUN_BY = 'run_by:'

/** Continues a sentence that begins with the name of the file. */
export function headFaultText(fault: string, arch: string = process.arch): string {
  const own = RUNS[arch]?.[0] ?? arch
  const machine = fault.startsWith('elf:') ? fault.slice('elf:'.length) : null
  if (fault.startsWith(RUN_BY)) {
    const program = fault.slice(RUN_BY.length).split(' ')
    return `is not a program: ${program[0]} runs it. ${beginWith(program)}`
  }
  if (machine === null) return SENTENCES[fault] ?? 'cannot be started on Linux.'
  return `is built for ${machine}; this machine is ${own}: build the server for linux/${own}.`
}
