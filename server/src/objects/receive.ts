// Receives a body of a known length.
import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { open } from 'node:fs/promises'
import { ApiError } from '@musterhost/contract'
import { WriteBehind } from './write-behind.ts'

/** Writes and flushes the body to a new file. The caller removes the file, also when this rejects. */
export async function receiveFile(
  path: string,
  body: AsyncIterable<Uint8Array>,
  content_length: number,
): Promise<{ file: BigIntStats; sha256: string }> {
  const handle = await open(path, 'wx', 0o600)
  const file = new WriteBehind(handle, content_length)
  try {
    const hash = createHash('sha256')
    for await (const chunk of requireLength(body, content_length)) {
      const is_taken = file.write(chunk)
      hash.update(chunk)
      await is_taken
    }
    await file.finish()
    return { file: await handle.stat({ bigint: true }), sha256: hash.digest('hex') }
  } finally {
    await file.settle()
    await handle.close()
  }
}

/** Holds the body in memory. */
export async function receiveBytes(
  body: AsyncIterable<Uint8Array>,
  content_length: number,
): Promise<{ bytes: Buffer; sha256: string }> {
  const bytes = Buffer.alloc(content_length)
  let received = 0
  for await (const chunk of requireLength(body, content_length)) {
    bytes.set(chunk, received)
    received += chunk.length
  }
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** Throws UPLOAD_INVALID at the first byte too many, or at an end that comes too early. */
async function* requireLength(body: AsyncIterable<Uint8Array>, content_length: number): AsyncGenerator<Uint8Array> {
  let received = 0
  for await (const chunk of body) {
    received += chunk.length
    if (received > content_length) throw lengthRefusal('too_long', content_length)
    yield chunk
  }
  if (received < content_length) throw lengthRefusal('too_short', content_length)
}

function lengthRefusal(reason: 'too_short' | 'too_long', content_length: number): ApiError {
  const message = `The body is ${reason === 'too_long' ? 'longer' : 'shorter'} than the ${content_length} bytes that were announced.`
  return new ApiError('UPLOAD_INVALID', { reason, content_length }, { message })
}
