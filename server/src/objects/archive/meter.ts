// Limits the bytes that come out of an archive, in all and in proportion to the bytes that went in. It is asked before a
// byte is stored, so that a decompression bomb ends at the limit. The writer then removes its partial folder.
import { archiveRefused } from './refusal.ts'

export type MeterLimits = {
  /** Unpacked bytes of the whole archive. */
  bytes_max: number
  /** Unpacked bytes for each packed byte. Deflate reaches 1,032; builds stay under 20. */
  ratio_max: number
  /** Unpacked bytes to which the ratio does not apply, because small archives may compress well. */
  ratio_free_bytes: number
}

export type Meter = {
  /** Throws when an entry of this length would exceed the limit. */
  expect: (bytes: number, entry: string) => void
  wentIn: (bytes: number) => void
  /** Throws ApiError ARCHIVE_INVALID `too_many_bytes` or `ratio`. */
  cameOut: (bytes: number) => void
}

export function createMeter(limits: MeterLimits): Meter {
  let bytes_in = 0
  let bytes_out = 0
  return {
    expect(bytes, entry) {
      if (bytes_out + bytes > limits.bytes_max) throw archiveRefused('too_many_bytes', entry)
    },
    wentIn(bytes) {
      bytes_in += bytes
    },
    cameOut(bytes) {
      bytes_out += bytes
      if (bytes_out > limits.bytes_max) throw archiveRefused('too_many_bytes')
      if (bytes_out > limits.ratio_free_bytes + limits.ratio_max * bytes_in) throw archiveRefused('ratio')
    },
  }
}
