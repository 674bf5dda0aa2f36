// The stored files of the platform, as a node that has joined reads them: over its link. It cannot change any.
import { callLink } from '../wire/link-call.ts'
import { type ByteRange, isObjectKey, ObjectNotFound, type Objects, type StoredObject } from './objects.ts'

/** `link`: the unix socket of the link. */
export function openLinkedObjects(link: string): Objects {
  const read: Objects['read'] = async (key, range) => {
    const response = await callLink(link, { method: 'GET', path: pathOf(key), headers: rangeHeaders(range) })
    if (response.statusCode === 200) return response
    response.resume()
    throw failureOf(key, response.statusCode)
  }
  const stat = async (key: string): Promise<StoredObject | null> => {
    const response = await callLink(link, { method: 'HEAD', path: pathOf(key) })
    response.resume()
    if (response.statusCode === 404) return null
    const { 'content-length': content_length, 'x-sha256': sha256 } = response.headers
    if (response.statusCode !== 200 || typeof sha256 !== 'string') throw failureOf(key, response.statusCode)
    return { content_length: Number(content_length), sha256 }
  }
  return {
    read,
    stat,
    async open(key) {
      const stored = await stat(key)
      if (stored === null) throw new ObjectNotFound(key)
      const { content_length } = stored
      return {
        content_length,
        async read(position, length) {
          const end = Math.min(position + length, content_length) - 1
          if (end < position) return Buffer.alloc(0)
          const chunks: Buffer[] = []
          for await (const chunk of (await read(key, { start: position, end })) as AsyncIterable<Buffer>)
            chunks.push(chunk)
          return Buffer.concat(chunks)
        },
        close: async () => {},
      }
    },
    localPath: () => null,
    put: rejectChange,
    copy: rejectChange,
    setAside: rejectChange,
    delete: rejectChange,
    removeUnfinished: async () => 0,
    copies_when_complete: false,
    direct: null,
    close: () => {},
  }
}

async function rejectChange(): Promise<never> {
  throw new Error('A node that has joined cannot change stored files.')
}

function pathOf(key: string): string {
  if (!isObjectKey(key)) throw new ObjectNotFound(key)
  return `/objects/${key}`
}

function rangeHeaders(range: ByteRange | undefined): Record<string, string> {
  return range === undefined ? {} : { 'x-start': String(range.start), 'x-end': String(range.end) }
}

function failureOf(key: string, status: number | undefined): Error {
  if (status === 404) return new ObjectNotFound(key)
  return new Error(`The platform does not send the object ${key} over the link (status ${status}).`)
}
