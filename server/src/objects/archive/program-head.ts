// What the first bytes of a file say about the machine that can run it. A name or a mode says nothing about that.

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
const BYTE_ORDER_MARK = '\xef\xbb\xbf'

/** Why no machine of this architecture starts the file: `elf:<machine>` is a program of another one. */
export type HeadFault = `elf:${string}` | 'carriage_return' | 'byte_order_mark' | 'windows' | 'macos'

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
  if (MACOS.has(head.toString('hex', 0, 4))) return 'macos'
  if (text.startsWith(`${BYTE_ORDER_MARK}#!`)) return 'byte_order_mark'
  if (!text.startsWith('#!')) return null
  return text.split('\n', 1)[0]!.endsWith('\r') ? 'carriage_return' : null
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
  macos: 'is a program of macOS, and lobbies run on Linux. Export or build the server for Linux.',
}

/** Continues a sentence that begins with the name of the file. */
export function headFaultText(fault: string, arch: string = process.arch): string {
  const own = RUNS[arch]?.[0] ?? arch
  const machine = fault.startsWith('elf:') ? fault.slice('elf:'.length) : null
  if (machine === null) return SENTENCES[fault] ?? 'cannot be started on Linux.'
  return `is built for ${machine}; this machine is ${own}: build the server for linux/${own}.`
}
