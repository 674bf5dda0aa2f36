// How much may come out of an archive, in all and for what went in. Asked before anything is kept, so that a bomb of
// any form ends at the cap, with what it has written so far removed by whoever writes.
import { archiveRefused } from './refusal.ts'

export type MeterLimits = {
  /** Bytes that all of it unpacks to. */
  bytes_max: number
  /** Bytes out for a byte in. Deflate reaches 1,032; builds stay under 20. */
  ratio_max: number
  /** So many bytes may come out before the ratio is looked at: small archives may be well compressed. */
  ratio_free_bytes: number
}

export type Meter = {
  /** Throws if an entry that says it is so long would not fit any more. */
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
