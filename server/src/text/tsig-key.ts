// The key that signs updates of a name server (TSIG, RFC 8945), as the operator's file has it. Two forms are read: the
// `key` block of BIND's tsig-keygen, and `algorithm:name:secret`, which Knot's `keymgr -t` writes as its first line.
export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512'] as const
export type TsigAlgorithm = (typeof TSIG_ALGORITHMS)[number]

/** `secret` is base64. */
export type TsigKey = { name: string; algorithm: TsigAlgorithm; secret: string }

const SECRET = '(?<secret>[A-Za-z0-9+/]+={0,2})'
const NAME = '(?<name>[A-Za-z0-9_.-]{1,253})'
const BLOCK = new RegExp(
  `^\\s*key\\s+"?${NAME}"?\\s*\\{\\s*algorithm\\s+"?(?<algorithm>[a-z0-9-]+)"?\\s*;\\s*secret\\s+"?${SECRET}"?\\s*;\\s*\\}\\s*;`,
  'm',
)
const LINE = new RegExp(`^(?:#\\s*)?(?<algorithm>hmac-[a-z0-9-]+):${NAME}:${SECRET}\\s*$`, 'm')
/** A shorter secret could be guessed. */
const SECRET_BYTES_MIN = 16

/** Throws an Error with a sentence that does not repeat the secret. */
export function parseTsigKey(text: string): TsigKey {
  const { name, algorithm, secret } = BLOCK.exec(text)?.groups ?? LINE.exec(text)?.groups ?? {}
  if (name === undefined || secret === undefined)
    throw new Error('has no key: neither a block of tsig-keygen nor algorithm:name:secret')
  const known = TSIG_ALGORITHMS.find((item) => item === algorithm)
  if (known === undefined) throw new Error(`has a key of ${algorithm}, which is none of ${TSIG_ALGORITHMS.join(', ')}`)
  if (Buffer.from(secret, 'base64').length < SECRET_BYTES_MIN)
    throw new Error(`has a secret of less than ${SECRET_BYTES_MIN} bytes`)
  return { name: name.toLowerCase().replace(/\.$/, ''), algorithm: known, secret }
}
