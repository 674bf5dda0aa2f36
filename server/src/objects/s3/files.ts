// Named files below a prefix of a bucket, which are no objects of uploads: those of backups.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { contentHashOf } from '../digest.ts'
import { type S3Client, S3Error } from './client.ts'
import { elementsOf, textOf } from './xml.ts'

/** Keys of one list. */
const LISTED_MAX = 1_000
/** Lists of one call: 10 million files. */
const LISTS_MAX = 10_000

/** The paths of all files below `folder`, which ends with a slash, in order. */
export async function* listFiles(client: S3Client, folder: string): AsyncGenerator<string> {
  const root = client.prefix === '' ? '' : `${client.prefix}/`
  let after = ''
  for (let list = 0; list < LISTS_MAX; list++) {
    const query = { 'list-type': '2', prefix: root + folder, 'max-keys': String(LISTED_MAX) }
    const { text } = await client.send({
      method: 'GET',
      key: null,
      query: after === '' ? query : { ...query, 'start-after': after },
    })
    const keys = elementsOf(text, 'Contents').map((item) => textOf(item, 'Key') ?? '')
    for (const key of keys) yield key.slice(root.length)
    after = keys.at(-1) ?? ''
    if (textOf(text, 'IsTruncated') !== 'true' || after === '') return
  }
  throw new Error(`${client.name} has more files than expected.`)
}

export async function writeFile(client: S3Client, path: string, local_path: string): Promise<void> {
  const { size } = await stat(local_path)
  const sha256 = await contentHashOf(local_path)
  await client.send({
    method: 'PUT',
    key: path,
    body: { content_length: size, sha256, open: () => createReadStream(local_path) },
  })
}

/** Null: there is none. */
export async function readFile(client: S3Client, path: string): Promise<Readable | null> {
  try {
    return await client.stream({ method: 'GET', key: path })
  } catch (error) {
    if (error instanceof S3Error && error.status === 404 && error.code !== 'NoSuchBucket') return null
    throw error
  }
}

export async function removeFile(client: S3Client, path: string): Promise<void> {
  await client.send({ method: 'DELETE', key: path })
}
