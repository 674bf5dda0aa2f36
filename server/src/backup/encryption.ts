// Encryption of the files of a repository, in the age format: `age --decrypt -i KEY FILE` opens each of them without this
// platform. Every file has a random key of its own, which is encrypted for the operator's key.
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { StartError } from '../config/start-error.ts'

/** Bytes of a chunk, and of its tag, as the format says. */
const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16

/** Encrypted bytes that are not what was written. */
export class CipherDamaged extends Error {
  constructor(cause: unknown) {
    super('Its encrypted bytes are damaged.', { cause })
    this.name = 'CipherDamaged'
  }
}

export type Cipher = {
  encrypt: (body: AsyncIterable<Uint8Array>) => Promise<Readable>
  /** Rejects with a StartError for another key. The stream fails with CipherDamaged where bytes are damaged or missing. */
  decrypt: (body: AsyncIterable<Uint8Array>) => Promise<Readable>
  /** The length of the encrypted bytes. */
  lengthOf: (plain_length: number) => number
  plainLengthOf: (length: number) => number
}

/** `AGE-SECRET-KEY-1...`, as `age-keygen` makes it. */
export function newBackupKey(): Promise<string> {
  return generateX25519Identity()
}

/** Throws a StartError for a text that is no key. */
export async function openCipher(key: string): Promise<Cipher> {
  const encrypter = new Encrypter()
  const decrypter = new Decrypter()
  try {
    encrypter.addRecipient(await identityToRecipient(key))
    decrypter.addIdentity(key)
  } catch (error) {
    throw new StartError('MUSTER_BACKUP_KEY is not a key. "muster keys backup" prints a new one.', { cause: error })
  }
  const header_bytes = (await encrypter.encrypt(new Uint8Array())).length - TAG_BYTES
  return {
    encrypt: async (body) => fromWeb(await encrypter.encrypt(toWeb(body))),

    async decrypt(body) {
      let plain: Awaited<ReturnType<typeof fromWeb>>
      try {
        plain = fromWeb(await decrypter.decrypt(toWeb(body)))
      } catch (error) {
        if (/no identity matched/.test((error as Error).message)) {
          throw new StartError('It was encrypted with another key than MUSTER_BACKUP_KEY.', { cause: error })
        }
        throw new CipherDamaged(error)
      }
      return Readable.from(damageNamed(plain))
    },

    lengthOf: (plain_length) =>
      header_bytes + plain_length + TAG_BYTES * Math.max(1, Math.ceil(plain_length / CHUNK_BYTES)),

    plainLengthOf(length) {
      const body = Math.max(length - header_bytes, 0)
      return Math.max(body - TAG_BYTES * Math.ceil(body / (CHUNK_BYTES + TAG_BYTES)), 0)
    },
  }
}

async function* damageNamed(body: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) yield Buffer.from(chunk)
  } catch (error) {
    throw new CipherDamaged(error)
  }
}

const toWeb = (body: AsyncIterable<Uint8Array>) => Readable.toWeb(Readable.from(body)) as globalThis.ReadableStream
const fromWeb = (body: globalThis.ReadableStream) => Readable.fromWeb(body as unknown as ReadableStream)
