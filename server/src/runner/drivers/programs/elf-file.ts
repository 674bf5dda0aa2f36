// What an ELF program needs of the machine before its first instruction: a loader, and a C library that is new enough. The
// file is of a stranger: each position and each count is bounded, and a file that makes no sense needs nothing known.
import { readSync } from 'node:fs'

const HEADER_BYTES = 64
/** Segments of a program. */
const SEGMENTS_MAX = 128
/** Entries of the dynamic segment. */
const DYNAMIC_ENTRIES_MAX = 1_024
/** Versions that a program needs of all its libraries. */
const VERSIONS_MAX = 1_024
/** Bytes of a name: of the loader, or of a version. */
const NAME_BYTES_MAX = 256
const SEGMENT = { load: 1, dynamic: 2, interpreter: 3 } as const
/** Tags of the dynamic segment. */
const TAG = { end: 0n, strings: 5n, needed_versions: 0x6ffffffen } as const
/** One library of the list of versions, and one version of it. */
const LIBRARY_BYTES = 16
const VERSION_BYTES = 16
const GLIBC = /^GLIBC_(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?$/

/** `glibc`: the newest version that is needed; null: none. */
export type ElfNeeds = { loader: string | null; glibc: string | null }

type Segment = { kind: number; offset: number; address: bigint; bytes: number }

/** `fd`: an ELF file in the byte order of this machine. */
export function readElfNeeds(fd: number): ElfNeeds {
  const segments = readSegments(fd)
  const interpreter = segments.find(({ kind }) => kind === SEGMENT.interpreter)
  const loader = interpreter === undefined ? null : nameAt(fd, interpreter.offset)
  return { loader, glibc: newestGlibc(fd, segments) }
}

function readSegments(fd: number): (Segment & { is_wide: boolean })[] {
  const header = bytesAt(fd, 0, HEADER_BYTES)
  if (header.length < HEADER_BYTES) return []
  const is_wide = header[4] === 2
  const offset = is_wide ? Number(header.readBigUInt64LE(32)) : header.readUInt32LE(28)
  const size = header.readUInt16LE(is_wide ? 54 : 42)
  const count = header.readUInt16LE(is_wide ? 56 : 44)
  if (count > SEGMENTS_MAX || size !== (is_wide ? 56 : 32)) return []
  const table = bytesAt(fd, offset, size * count)
  return Array.from({ length: Math.floor(table.length / size) }, (_, index) => {
    const at = index * size
    const kind = table.readUInt32LE(at)
    return is_wide
      ? {
          ...{ kind, is_wide, offset: Number(table.readBigUInt64LE(at + 8)) },
          ...{ address: table.readBigUInt64LE(at + 16), bytes: Number(table.readBigUInt64LE(at + 32)) },
        }
      : {
          ...{ kind, is_wide, offset: table.readUInt32LE(at + 4) },
          ...{ address: BigInt(table.readUInt32LE(at + 8)), bytes: table.readUInt32LE(at + 16) },
        }
  })
}

function newestGlibc(fd: number, segments: readonly (Segment & { is_wide: boolean })[]): string | null {
  const dynamic = segments.find(({ kind }) => kind === SEGMENT.dynamic)
  if (dynamic === undefined) return null
  const entry_bytes = dynamic.is_wide ? 16 : 8
  const table = bytesAt(fd, dynamic.offset, Math.min(dynamic.bytes, DYNAMIC_ENTRIES_MAX * entry_bytes))
  const addresses = new Map<bigint, bigint>()
  for (let at = 0; at + entry_bytes <= table.length; at += entry_bytes) {
    const tag = dynamic.is_wide ? table.readBigUInt64LE(at) : BigInt(table.readUInt32LE(at))
    if (tag === TAG.end) break
    addresses.set(tag, dynamic.is_wide ? table.readBigUInt64LE(at + 8) : BigInt(table.readUInt32LE(at + 4)))
  }
  const strings = offsetOf(segments, addresses.get(TAG.strings))
  const versions = offsetOf(segments, addresses.get(TAG.needed_versions))
  if (strings === null || versions === null) return null
  let newest: { text: string; major: number; minor: number } | null = null
  for (const name of versionNames(fd, versions, strings)) {
    const [, major, minor] = GLIBC.exec(name) ?? []
    if (major === undefined) continue
    const found = { text: `${major}.${minor}`, major: Number(major), minor: Number(minor) }
    if (newest === null || isNewer(found, newest)) newest = found
  }
  return newest?.text ?? null
}

/** Two linked lists: of libraries, and of the versions of each. */
function* versionNames(fd: number, start: number, strings: number): Generator<string> {
  let left = VERSIONS_MAX
  for (let library_at = start; left > 0; left--) {
    const library = bytesAt(fd, library_at, LIBRARY_BYTES)
    if (library.length < LIBRARY_BYTES) return
    let version_at = library_at + library.readUInt32LE(8)
    for (let count = library.readUInt16LE(2); count > 0 && left > 0; count--, left--) {
      const version = bytesAt(fd, version_at, VERSION_BYTES)
      if (version.length < VERSION_BYTES) return
      yield nameAt(fd, strings + version.readUInt32LE(8)) ?? ''
      version_at += version.readUInt32LE(12)
    }
    const next = library.readUInt32LE(12)
    if (next === 0) return
    library_at += next
  }
}

/** Where an address of the running program is in the file. */
function offsetOf(segments: readonly Segment[], address: bigint | undefined): number | null {
  if (address === undefined) return null
  const segment = segments.find(
    (one) => one.kind === SEGMENT.load && address >= one.address && address < one.address + BigInt(one.bytes),
  )
  return segment === undefined ? null : segment.offset + Number(address - segment.address)
}

function isNewer(a: { major: number; minor: number }, b: { major: number; minor: number }): boolean {
  return a.major === b.major ? a.minor > b.minor : a.major > b.major
}

/** Whether version `a` is newer than version `b`, both as `2.36`. */
export function isNewerVersion(a: string, b: string): boolean {
  const of = (text: string): { major: number; minor: number } => {
    const [major = 0, minor = 0] = text.split('.').map(Number)
    return { major, minor }
  }
  return isNewer(of(a), of(b))
}

/** Up to the first NUL. Null where there is none. */
function nameAt(fd: number, offset: number): string | null {
  const bytes = bytesAt(fd, offset, NAME_BYTES_MAX)
  const end = bytes.indexOf(0)
  return end <= 0 ? null : bytes.toString('latin1', 0, end)
}

/** Fewer bytes at the end of the file, and none beyond it. */
function bytesAt(fd: number, offset: number, length: number): Buffer {
  if (!Number.isSafeInteger(offset) || length === 0) return Buffer.alloc(0)
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, readSync(fd, bytes, 0, length, offset))
}
