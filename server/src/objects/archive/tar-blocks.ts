// The outer form of a tar, held to the letter before any parser sees it: whole blocks of 512 bytes, headers with a right
// checksum and a plain octal length, data only where data belongs, two empty blocks at the end and nothing after them.
// A parser that meets only such bytes cannot disagree with us about where one entry ends and the next begins.
import { type ArchiveFault, archiveRefused } from './refusal.ts'

const BLOCK_BYTES = 512
/** Of an extended header (a long path, times, attributes); it is held in memory. */
const EXTENDED_BYTES_MAX = 256 * 1024
/** Extended headers in front of one entry: of the whole archive, of this entry, a long path, a long link. */
const EXTENDED_IN_A_ROW_MAX = 4
/** Empty blocks after the end; tar fills up to 10 KiB, tapes to more. */
const PADDING_BYTES_MAX = 1024 * 1024

const DATA_TYPES = new Set(['0', '\0', '7'])
const EXTENDED_TYPES = new Set(['x', 'g', 'L', 'K'])
const FAULT_OF_TYPE: ReadonlyMap<string, ArchiveFault> = new Map([
  ['1', 'link'],
  ['2', 'link'],
  ['3', 'device'],
  ['4', 'device'],
  ['6', 'fifo'],
  ['S', 'sparse'],
])

export type TarBlocks = {
  /** Throws ApiError ARCHIVE_INVALID at the first byte that is not as it must be. */
  take: (chunk: Buffer) => void
  /** Throws when the archive is not at its end. */
  end: () => void
  /** The lengths that the headers of entries have named and nobody has asked for yet, in order. */
  content_lengths: number[]
}

/** `expect` is told of every entry's length as soon as it is known. */
export function createTarBlocks(expect: (bytes: number, entry: string) => void): TarBlocks {
  const block = Buffer.alloc(BLOCK_BYTES)
  let is_first = true
  let filled = 0
  let data_left = 0
  let empty_blocks = 0
  let padding_bytes = 0
  let extended_in_a_row = 0
  const content_lengths: number[] = []

  function takeHeader(): void {
    if (block.every((byte) => byte === 0)) {
      if (extended_in_a_row > 0) throw archiveRefused('corrupt')
      empty_blocks += 1
      if (empty_blocks <= 2) return
      padding_bytes += BLOCK_BYTES
      if (padding_bytes > PADDING_BYTES_MAX) throw archiveRefused('trailing_data')
      return
    }
    if (empty_blocks >= 2) throw archiveRefused('trailing_data')
    if (empty_blocks === 1) throw archiveRefused('corrupt')
    if (!isTarHeader(block)) throw archiveRefused(is_first ? 'not_an_archive' : 'corrupt')
    if (!hasRightChecksum(block)) throw archiveRefused('corrupt')
    is_first = false

    const name = textOf(block.subarray(0, 100))
    const type = String.fromCharCode(block.readUInt8(156))
    const size = octalOf(block.subarray(124, 136))
    if (size === null) throw archiveRefused('size_mismatch', name)
    if (EXTENDED_TYPES.has(type)) {
      extended_in_a_row += 1
      if (size > EXTENDED_BYTES_MAX || extended_in_a_row > EXTENDED_IN_A_ROW_MAX) throw archiveRefused('corrupt', name)
    } else {
      const fault = FAULT_OF_TYPE.get(type)
      if (fault !== undefined) throw archiveRefused(fault, name)
      if (!DATA_TYPES.has(type) && type !== '5') throw archiveRefused('unknown_type', name)
      if (size > 0 && type === '5') throw archiveRefused('size_mismatch', name)
      expect(size, name)
      content_lengths.push(size)
      extended_in_a_row = 0
    }
    data_left = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
  }

  return {
    content_lengths,
    take(chunk) {
      let at = 0
      while (at < chunk.length) {
        if (data_left > 0) {
          const step = Math.min(data_left, chunk.length - at)
          data_left -= step
          at += step
          continue
        }
        const copied = chunk.copy(block, filled, at)
        at += copied
        filled += copied
        if (filled < BLOCK_BYTES) return
        filled = 0
        takeHeader()
      }
    },
    end() {
      if (filled > 0 && empty_blocks >= 2) throw archiveRefused('trailing_data')
      if (filled > 0 || data_left > 0 || empty_blocks < 2) throw archiveRefused('truncated')
    },
  }
}

/** Whether the block is a header as POSIX or GNU write them. */
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

/** Null for everything but plain octal digits: the binary form is for lengths from 8 GiB on, which no build has. */
function octalOf(field: Buffer): number | null {
  const digits = /^ *([0-7]{1,12})(?:[ \0]+|$)/.exec(field.toString('latin1'))?.[1]
  return digits === undefined ? null : Number.parseInt(digits, 8)
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? field.length : end)
}
