// Objects in a bucket of an S3 service:
//
//   <prefix>/objects/<key>    the bytes; their SHA-256 is in the metadata, except of what `take` copied
//   <prefix>/incoming/<key>   bytes that clients have sent to a presigned address, not verified yet
//   <prefix>/damaged/<key>    damaged bytes, set aside
//
// A put receives the whole body on this machine first, so the service gets bytes with their hash, and a failed request is
// repeated. Only the platform writes to `objects/`. A presigned address leads to `incoming/`.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { type Incoming, openIncoming } from '../incoming.ts'
import {
  type ByteRange,
  type DirectUploads,
  ObjectNotFound,
  type Objects,
  type OpenObject,
  type PutOptions,
  publishWithin,
  requireKey,
  type StoredObject,
} from '../objects.ts'
import { receiveBytes, receiveFile } from '../receive.ts'
import { mayPass, ObjectsAway, type S3Client, S3Error } from './client.ts'
import { abortOldUploads, copyInParts, sendInParts } from './multipart.ts'

/** A body of this length is held in memory until it is sent. A longer one is written to the disk. */
const MEMORY_BYTES_MAX = 256 * 1024
/** A longer object is sent in parts. */
const SINGLE_BYTES_MAX = 32 * 1024 * 1024
/** The longest object that a service copies in one request: 5 GB. */
const SINGLE_COPY_BYTES_MAX = 5_000_000_000
/** How often one read is continued after its connection broke. */
const CONTINUED_MAX = 5
const SHA256_HEADER = 'x-amz-meta-muster-sha256'
const SHA256 = /^[0-9a-f]{64}$/

/** A body that has arrived on this machine. */
type Received = StoredObject & { open: (range?: ByteRange) => Readable | Buffer; remove: () => Promise<void> }

export type S3ObjectsOptions = {
  /** Bodies on their way to the service. */
  incoming_folder: string
  /** The origin at which clients reach the service; null: uploads go through the api. */
  upload_endpoint: string | null
}

export function openS3Objects(client: S3Client, options: S3ObjectsOptions): Objects {
  return new S3Objects(client, options)
}

class S3Objects implements Objects {
  readonly copies_when_complete = true
  readonly direct: DirectUploads | null
  readonly #client: S3Client
  readonly #incoming: Incoming

  constructor(client: S3Client, { incoming_folder, upload_endpoint }: S3ObjectsOptions) {
    this.#client = client
    this.#incoming = openIncoming(incoming_folder)
    this.direct = upload_endpoint === null ? null : this.#directAt(upload_endpoint)
  }

  async put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    content_length: number,
    options: PutOptions = {},
  ): Promise<StoredObject> {
    requireKey(key)
    const received = await this.#receive(key, body, content_length)
    try {
      const stored = { content_length, sha256: received.sha256 }
      await publishWithin(options, stored, () => this.#send(key, received))
      return stored
    } finally {
      await received.remove()
    }
  }

  async copy(from: string, to: string): Promise<StoredObject> {
    await this.#copy(pathOf(from), pathOf(to))
    const stored = await this.stat(to)
    if (stored === null) throw new ObjectNotFound(to)
    return stored
  }

  async stat(key: string): Promise<StoredObject | null> {
    const head = await this.#head(pathOf(key))
    if (head === null) return null
    if (head.sha256 !== null) return { content_length: head.content_length, sha256: head.sha256 }
    return this.#hashed(key)
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    const first = await this.#get(key, range)
    return Readable.from(this.#bytesOf(key, first, range), { objectMode: false })
  }

  async open(key: string): Promise<OpenObject> {
    const head = await this.#head(pathOf(key))
    if (head === null) throw new ObjectNotFound(key)
    const { content_length, etag } = head
    return {
      content_length,
      read: async (position, length) => {
        const end = Math.min(position + length, content_length) - 1
        if (end < position) return Buffer.alloc(0)
        const chunks: Buffer[] = []
        const first = await this.#get(key, { start: position, end }, etag)
        for await (const chunk of this.#bytesOf(key, first, { start: position, end })) chunks.push(chunk)
        return Buffer.concat(chunks)
      },
      close: async () => undefined,
    }
  }

  async setAside(key: string): Promise<void> {
    try {
      await this.#copy(pathOf(key), `damaged/${key}`)
    } catch (error) {
      if (error instanceof ObjectNotFound) return
      throw error
    }
    await this.#client.send({ method: 'DELETE', key: pathOf(key) })
  }

  localPath(key: string): null {
    requireKey(key)
    return null
  }

  async delete(key: string): Promise<void> {
    requireKey(key)
    const places = ['objects', 'incoming', 'damaged']
    await Promise.all(places.map((place) => this.#delete(`${place}/${key}`)))
  }

  async removeUnfinished(before_ms: number): Promise<number> {
    try {
      return await abortOldUploads(this.#client, before_ms)
    } catch (error) {
      // A small service may not list them.
      if (error instanceof S3Error && error.code === 'NotImplemented') return 0
      throw error
    }
  }

  close(): void {
    this.#client.close()
  }

  #directAt(endpoint: string): DirectUploads {
    const client = this.#client
    return {
      presignPut({ key, content_length, content_type, lifetime_ms }) {
        const headers = {
          'content-length': String(content_length),
          ...(content_type === null ? {} : { 'content-type': content_type }),
        }
        const lifetime_s = Math.floor(lifetime_ms / 1_000)
        return client.presign({ method: 'PUT', key: incomingPathOf(key), headers }, { endpoint, lifetime_s })
      },
      arrivedLength: async (key) => (await this.#head(incomingPathOf(key)))?.content_length ?? null,
      take: async (key, to) => {
        try {
          // Without its metadata: the sender may have chosen them.
          await this.#copy(incomingPathOf(key), pathOf(to), { 'x-amz-metadata-directive': 'REPLACE' })
        } catch (error) {
          if (error instanceof ObjectNotFound) return null
          throw error
        }
        return this.#hashed(to)
      },
    }
  }

  async #receive(key: string, body: AsyncIterable<Uint8Array>, content_length: number): Promise<Received> {
    if (content_length <= MEMORY_BYTES_MAX) {
      const { bytes, sha256 } = await receiveBytes(body, content_length)
      const open = (range?: ByteRange): Buffer => (range ? bytes.subarray(range.start, range.end + 1) : bytes)
      return { content_length, sha256, open, remove: async () => undefined }
    }
    const path = this.#incoming.newPath(key)
    const remove = (): Promise<void> => rm(path, { force: true })
    try {
      const { sha256 } = await receiveFile(path, body, content_length)
      return { content_length, sha256, open: (range) => createReadStream(path, { ...range }), remove }
    } catch (error) {
      await remove()
      throw error
    }
  }

  async #send(key: string, { content_length, sha256, open }: Received): Promise<void> {
    const headers = { [SHA256_HEADER]: sha256 }
    if (content_length > SINGLE_BYTES_MAX) {
      await sendInParts(this.#client, { key: pathOf(key), content_length, headers, open })
      return
    }
    await this.#client.send({ method: 'PUT', key: pathOf(key), headers, body: { content_length, sha256, open } })
  }

  /** Null: there is none. */
  async #head(path: string): Promise<{ content_length: number; sha256: string | null; etag: string } | null> {
    try {
      const { headers } = await this.#client.send({ method: 'HEAD', key: path })
      const sha256 = String(headers[SHA256_HEADER] ?? '')
      return {
        content_length: Number(headers['content-length']),
        sha256: SHA256.test(sha256) ? sha256 : null,
        etag: String(headers.etag ?? ''),
      }
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  async #hashed(key: string): Promise<StoredObject | null> {
    try {
      const hash = createHash('sha256')
      let content_length = 0
      for await (const chunk of (await this.read(key)) as AsyncIterable<Buffer>) {
        hash.update(chunk)
        content_length += chunk.length
      }
      return { content_length, sha256: hash.digest('hex') }
    } catch (error) {
      if (error instanceof ObjectNotFound) return null
      throw error
    }
  }

  /** `etag`: of the version that is read; another one counts as missing. OpenStack Swift compares If-Match with another tag. */
  async #get(key: string, range: ByteRange | undefined, etag?: string): Promise<IncomingMessage> {
    const headers: Record<string, string> = range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` }
    try {
      const response = await this.#client.stream({ method: 'GET', key: pathOf(key), headers })
      if (etag === undefined || response.headers.etag === etag) return response
      response.destroy()
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    throw new ObjectNotFound(key)
  }

  /** The body of a response. After a broken connection it goes on with the same version of the object. */
  async *#bytesOf(key: string, first: IncomingMessage, range?: ByteRange): AsyncGenerator<Buffer> {
    const start = range?.start ?? 0
    const expected = range ? range.end + 1 - range.start : Number(first.headers['content-length'])
    let received = 0
    let response = first
    for (let continued = 0; ; continued++) {
      try {
        for await (const chunk of response as AsyncIterable<Buffer>) {
          received += chunk.length
          yield chunk
        }
        return
      } catch (error) {
        if (!mayPass(error)) throw error
        if (continued === CONTINUED_MAX) throw new ObjectsAway(error)
        response = await this.#get(key, { start: start + received, end: start + expected - 1 }, first.headers.etag)
      }
    }
  }

  async #copy(from: string, to: string, headers: Record<string, string> = {}): Promise<void> {
    const head = await this.#head(from)
    if (head === null) throw new ObjectNotFound(from)
    const { content_length, sha256 } = head
    const source = { 'x-amz-copy-source': this.#client.pathOf(from) }
    try {
      if (content_length > SINGLE_COPY_BYTES_MAX) {
        const kept: Record<string, string> = {}
        if (sha256 !== null && headers['x-amz-metadata-directive'] === undefined) kept[SHA256_HEADER] = sha256
        await copyInParts(this.#client, { key: to, content_length, headers: kept, source })
        return
      }
      await this.#client.send({ method: 'PUT', key: to, headers: { ...source, ...headers }, is_slow: true })
    } catch (error) {
      if (isMissing(error)) throw new ObjectNotFound(from)
      throw error
    }
  }

  async #delete(path: string): Promise<void> {
    try {
      await this.#client.send({ method: 'DELETE', key: path })
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
}

function pathOf(key: string): string {
  requireKey(key)
  return `objects/${key}`
}

export function incomingPathOf(key: string): string {
  requireKey(key)
  return `incoming/${key}`
}

function isMissing(error: unknown): boolean {
  return error instanceof S3Error && error.status === 404 && error.code !== 'NoSuchBucket'
}
