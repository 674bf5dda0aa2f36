import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { WriteBehind } from './write-behind.ts'

/** More than both buffers, and more than the unflushed limit. */
const LONG_BYTES = 40 * 1024 * 1024

test('a file is the sequence of its chunks, whatever their lengths, and each chunk may be reused at once', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-write-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'file')
  const lengths = fc.array(fc.oneof(fc.nat(64), fc.nat(3 * 1024 * 1024)), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(lengths, async (all) => {
      const written = await writeChunks(path, all)
      assert.ok(written.equals(await readFile(path)))
    }),
    { numRuns: 30, examples: [[[0, 16]], [[16, 0, 16, 0]]] },
  )
  const written = await writeChunks(path, Array(LONG_BYTES / (64 * 1024)).fill(64 * 1024))
  assert.ok(written.equals(await readFile(path)))
})

test('a failure of the disk is thrown by the next write, and at the end', async () => {
  const handle = await open('/dev/full', 'w')
  const file = new WriteBehind(handle, LONG_BYTES)
  const isFull = { code: 'ENOSPC' }
  await assert.rejects(async () => {
    for (let bytes = 0; bytes < LONG_BYTES; bytes += 64 * 1024) await file.write(Buffer.alloc(64 * 1024))
  }, isFull)
  await assert.rejects(file.finish(), isFull)
  await file.settle()
  await handle.close()
})

async function writeChunks(path: string, lengths: readonly number[]): Promise<Buffer> {
  const handle: FileHandle = await open(path, 'w')
  const file = new WriteBehind(
    handle,
    lengths.reduce((sum, length) => sum + length, 0),
  )
  const chunks: Buffer[] = []
  for (const length of lengths) {
    const chunk = randomFillSync(Buffer.alloc(length))
    chunks.push(Buffer.from(chunk))
    await file.write(chunk)
    chunk.fill(0)
  }
  await file.finish()
  await file.settle()
  await handle.close()
  return Buffer.concat(chunks)
}
