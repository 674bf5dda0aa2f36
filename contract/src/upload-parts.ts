// The lengths of parts that the command and the hub ask for. Something in front of the platform may refuse long bodies.

const MEBIBYTE = 1024 * 1024
const SHORTER = [16, 8, 5]

/** Length of a part that is tried first, in bytes. */
export const FIRST_PART_BYTES = 32 * MEBIBYTE

/** The length to try after a body of `body_bytes` was refused. Undefined: S3 accepts no shorter parts. */
export function shorterPartBytes(body_bytes: number): number | undefined {
  return [FIRST_PART_BYTES, ...SHORTER.map((mebibytes) => mebibytes * MEBIBYTE)].find((bytes) => bytes < body_bytes)
}
