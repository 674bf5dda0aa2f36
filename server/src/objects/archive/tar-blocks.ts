// Checks the outer form of a tar before any parser reads it. It has whole blocks of 512 bytes, headers with a right checksum
// and a plain octal length, and data only after headers of files. Two empty blocks end it, and nothing follows. With such
// bytes a parser cannot disagree about where one entry ends and the next begins.
import { type ArchiveFault, archiveRefused } from './refusal.ts'

const BLOCK_BYTES = 512
/** Bytes of an extended header (a long path, times, attributes), which is kept in memory. */
const EXTENDED_BYTES_MAX = 256 * 1024
/** Extended headers before one entry: one of the whole archive, one of this entry, a long path, a long link. */
const EXTENDED_IN_A_ROW_MAX = 4
/** Bytes of empty blocks after the end. tar pads to 10 KiB, tapes to more. */
const PADDING_BYTES_MAX = 1024 * 1024

const DATA_TYPES = new Set(['0', '\0', '7'])
const EXTENDED_TYPES = new Set(['x', 'g', 'L', 'K'])
/** Types without data that a layer of a container image may have: hard links, symbolic links, devices. */
const LAYER_TYPES = new Set(['1', '2', '3', '4'])
const FAULT_OF_TYPE: ReadonlyMap<string, ArchiveFault> = new Map([
  ['1', 'link'],
  ['2', 'link'],
  ['3', 'device'],
  ['4', 'device'],
  ['6', 'fifo'],
  ['S', 'sparse'],
])

export class TarBlocks {
  /** The lengths in the headers of entries, in order. The reader of the entries removes them. */
  readonly content_lengths: number[] = []
  /** The position of the data of each of these entries. */
  readonly content_starts: number[] = []
  /** Name in the last header of an entry; null: there was none. Long names are shortened. */
  last_name: string | null = null
  /** Called with the length of every entry as soon as it is known. */
  readonly #expect: (bytes: number, entry: string) => void
  readonly #is_layer: boolean
  readonly #block = Buffer.alloc(BLOCK_BYTES)
  #filled = 0
  #position = 0
  #is_first = true
  #data_left = 0
  #empty_blocks = 0
  #padding_bytes = 0
  #extended_in_a_row = 0

  constructor(expect: (bytes: number, entry: string) => void, { is_layer = false } = {}) {
    this.#expect = expect
    this.#is_layer = is_layer
  }

  /** Throws ApiError ARCHIVE_INVALID at the first byte that breaks the form. */
  take(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#data_left > 0) {
        const step = Math.min(this.#data_left, chunk.length - at)
        this.#data_left -= step
        this.#position += step
        at += step
        continue
      }
      const copied = chunk.copy(this.#block, this.#filled, at)
      at += copied
      this.#filled += copied
      this.#position += copied
      if (this.#filled < BLOCK_BYTES) return
      this.#filled = 0
      this.#takeBlock()
    }
  }

  /** Throws when the archive is incomplete. */
  end(): void {
    if (this.#filled > 0 && this.#empty_blocks >= 2) throw archiveRefused('trailing_data')
    if (this.#filled > 0 || this.#data_left > 0 || this.#empty_blocks < 2) throw archiveRefused('truncated')
  }

  #takeBlock(): void {
    if (this.#block.every((byte) => byte === 0)) {
      this.#takeEmptyBlock()
      return
    }
    if (this.#empty_blocks >= 2) throw archiveRefused('trailing_data')
    if (this.#empty_blocks === 1) throw archiveRefused('corrupt')
    if (!isTarHeader(this.#block)) throw archiveRefused(this.#is_first ? 'not_an_archive' : 'corrupt')
    if (!hasRightChecksum(this.#block)) throw archiveRefused('corrupt')
    this.#is_first = false
    this.#takeHeader()
  }

  #takeEmptyBlock(): void {
    if (this.#extended_in_a_row > 0) throw archiveRefused('corrupt')
    this.#empty_blocks += 1
    if (this.#empty_blocks <= 2) return
    this.#padding_bytes += BLOCK_BYTES
    if (this.#padding_bytes > PADDING_BYTES_MAX) throw archiveRefused('trailing_data')
  }

  #takeHeader(): void {
    const name = textOf(this.#block.subarray(0, 100))
    const type = String.fromCharCode(this.#block.readUInt8(156))
    const size = octalOf(this.#block.subarray(124, 136))
    if (size === null) throw archiveRefused('size_mismatch', name)
    if (EXTENDED_TYPES.has(type)) {
      this.#extended_in_a_row += 1
      if (size > EXTENDED_BYTES_MAX) throw archiveRefused('extended_header')
      if (this.#extended_in_a_row > EXTENDED_IN_A_ROW_MAX) throw archiveRefused('corrupt', name)
    } else {
      this.#requireType(type, size, name)
      this.#expect(size, name)
      this.content_lengths.push(size)
      this.content_starts.push(this.#position)
      this.#extended_in_a_row = 0
      this.last_name = name
    }
    this.#data_left = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
  }

  #requireType(type: string, size: number, name: string): void {
    const is_empty = type === '5' || (this.#is_layer && LAYER_TYPES.has(type))
    const fault = FAULT_OF_TYPE.get(type)
    if (fault !== undefined && !is_empty) throw archiveRefused(fault, name)
    if (!DATA_TYPES.has(type) && !is_empty) throw archiveRefused('unknown_type', name)
    if (size > 0 && is_empty) throw archiveRefused('size_mismatch', name)
  }
}

/** Whether the block is a header in the form of POSIX or GNU. */
export function isTarHeader(block: Buffer): boolean {
  if (block.length < BLOCK_BYTES) return false
  const magic = block.toString('latin1', 257, 265)
  return magic.startsWith('ustar\0') || magic === 'ustar  \0'
}

function hasRightChecksum(block: Buffer): boolean {
  let sum = 8 * 0x20
  for (let at = 0; at < BLOCK_BYTES; at++) if (at < 148 || at >= 156) sum += block.readUInt8(at)
  return octalOf(block.subarray(148, 156)) === sum
}

/** Null for anything but plain octal digits. The binary form is for lengths above 8 GiB, which no build has. */
function octalOf(field: Buffer): number | null {
  const digits = /^ *([0-7]{1,12})(?:[ \0]+|$)/.exec(field.toString('latin1'))?.[1]
  return digits === undefined ? null : Number.parseInt(digits, 8)
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? field.length : end)
}
