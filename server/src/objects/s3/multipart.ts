// Long objects, sent or copied in parts. The object appears when all parts are joined. A failure removes the parts; what a killed
// process leaves is removed by abortOldUploads().
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { ByteRange } from '../objects.ts'
import type { S3Client } from './client.ts'
import { elementsOf, encoded, textOf } from './xml.ts'

/** Bytes of a part that is sent. It is held in memory. 10,000 parts are allowed. */
const PART_BYTES = 16 * 1024 * 1024
/** Parts of one object on their way at once. */
const PARTS_AT_ONCE_MAX = 3
/** Bytes of a part that the service copies. */
const COPY_PART_BYTES = 1_000_000_000
/** Unfinished uploads of one list. */
const LISTED_MAX = 1_000

type Target = { key: string; content_length: number; headers: Record<string, string> }

export async function sendInParts(
  client: S3Client,
  { open, ...target }: Target & { open: (range: ByteRange) => Readable | Buffer },
): Promise<void> {
  await inParts(client, target, PART_BYTES, async (query, range) => {
    const content = open(range)
    const bytes = Buffer.isBuffer(content) ? content : await buffer(content)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const body = { content_length: bytes.length, sha256, open: () => bytes }
    const { headers } = await client.send({ method: 'PUT', key: target.key, query, body })
    return String(headers.etag)
  })
}

export async function copyInParts(
  client: S3Client,
  { source, ...target }: Target & { source: Record<string, string> },
): Promise<void> {
  await inParts(client, target, COPY_PART_BYTES, async (query, { start, end }) => {
    const headers = { ...source, 'x-amz-copy-source-range': `bytes=${start}-${end}` }
    const { text } = await client.send({ method: 'PUT', key: target.key, query, headers, is_slow: true })
    const etag = textOf(text, 'ETag')
    if (etag === null) throw new Error('The S3 service does not name the part that it copied.')
    return etag
  })
}

async function inParts(
  client: S3Client,
  { key, content_length, headers }: Target,
  part_bytes: number,
  makePart: (query: Record<string, string>, range: ByteRange) => Promise<string>,
): Promise<void> {
  const { text } = await client.send({ method: 'POST', key, query: { uploads: '' }, headers })
  const upload_id = textOf(text, 'UploadId')
  if (upload_id === null) throw new Error('The S3 service does not name the upload in parts.')
  try {
    const etags: string[] = Array.from({ length: Math.ceil(content_length / part_bytes) })
    let next = 0
    const work = async (): Promise<void> => {
      while (next < etags.length) {
        const index = next++
        const start = index * part_bytes
        const range = { start, end: Math.min(start + part_bytes, content_length) - 1 }
        etags[index] = await makePart({ partNumber: String(index + 1), uploadId: upload_id }, range)
      }
    }
    const ends = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE_MAX }, work))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    await join(client, key, upload_id, etags)
  } catch (error) {
    await abort(client, key, upload_id).catch(() => undefined)
    throw error
  }
}

async function join(client: S3Client, key: string, upload_id: string, etags: readonly string[]): Promise<void> {
  const parts = etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${encoded(etag)}</ETag></Part>`,
  )
  const bytes = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const body = { content_length: bytes.length, sha256, open: () => bytes }
  await client.send({ method: 'POST', key, query: { uploadId: upload_id }, body, is_slow: true })
}

async function abort(client: S3Client, key: string, upload_id: string): Promise<void> {
  await client.send({ method: 'DELETE', key, query: { uploadId: upload_id } })
}

/** Removes the parts of uploads that began before this time and never ended. Returns how many uploads. */
export async function abortOldUploads(client: S3Client, before_ms: number): Promise<number> {
  const root = client.prefix === '' ? '' : `${client.prefix}/`
  const query = { uploads: '', prefix: `${root}objects/`, 'max-uploads': String(LISTED_MAX) }
  const { text } = await client.send({ method: 'GET', key: null, query })
  let count = 0
  for (const upload of elementsOf(text, 'Upload')) {
    const [key, upload_id] = [textOf(upload, 'Key'), textOf(upload, 'UploadId')]
    const begun_ms = Date.parse(textOf(upload, 'Initiated') ?? '')
    if (key === null || upload_id === null || !(begun_ms < before_ms)) continue
    await abort(client, key.slice(root.length), upload_id)
    count++
  }
  return count
}
