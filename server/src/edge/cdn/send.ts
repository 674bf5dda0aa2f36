// Sends stored files: small ones from memory, large ones block by block, as fast as the client reads them. Every byte is
// verified by the recorded hashes before it is sent (objects/damage.ts). Damage that is found before the first byte is
// refused with STORED_FILE_DAMAGED; after it, the connection is broken off. A file in memory is sent without a turn of the
// event loop.
import { ApiError } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { reportDamage } from '../../database/damaged-objects.ts'
import { ObjectDamaged, type Recorded } from '../../objects/damage.ts'
import { BLOCK_BYTES } from '../../objects/digest.ts'
import type { ByteRange } from '../../objects/objects.ts'
import type { Encoding } from '../../objects/pack.ts'
import type { Exchange } from '../http/exchange.ts'
import { beginResponse, breakResponse, drained, endResponse, sendResponse } from '../http/response.ts'
import { MEMORY_FILE_BYTES_MAX } from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'
import type { SharedCounts } from '../shared-counts.ts'
import { type BlockLists, createBlockLists } from './block-lists.ts'
import type { DamagedObjects } from './damaged.ts'
import type { SiteFiles } from './disk-cache.ts'
import { createMemory } from './memory.ts'
import { createSendUnpacked } from './send-unpacked.ts'

/** Each function but `unpacked` adds Content-Length to the headers. The response to a HEAD has only a head. */
export type Send = {
  bytes: (to: Exchange, status: number, headers: string[], body: Buffer) => void
  /** Sends the file, or a range of it with its Content-Range. Throws or rejects with STORED_FILE_DAMAGED. */
  file: (
    to: Exchange,
    file: Recorded,
    range: ByteRange | null,
    headers: string[],
    status?: number,
  ) => void | Promise<void>
  /** Sends the file, compressed by the edge. Throws or rejects with the same. */
  packed: (to: Exchange, file: Recorded, encoding: Encoding, headers: string[], status?: number) => void | Promise<void>
  /** Sends the file, decompressed by the edge (send-unpacked.ts). Throws or rejects with the same, and its refusals. */
  unpacked: (
    to: Exchange,
    file: Recorded,
    encoding: Encoding,
    headers: string[],
    status?: number,
  ) => void | Promise<void>
}

export const NOSNIFF = ['x-content-type-options', 'nosniff']

export function createSend(
  ctx: Context,
  {
    lookups,
    damaged,
    site_files,
    shared,
  }: { lookups: Lookups; damaged: DamagedObjects; site_files: SiteFiles; shared: SharedCounts | null },
): Send {
  const memory = createMemory(site_files)
  const block_lists = createBlockLists(ctx, lookups)
  const sendUnpacked = createSendUnpacked(ctx, shared?.of('unpacked') ?? null)

  function bytes(to: Exchange, status: number, headers: string[], body: Buffer): void {
    sendResponse(to, status, [...headers, 'content-length', String(body.length)], body)
  }

  function requireUnmarked({ object_key }: Recorded): void {
    if (damaged.has(object_key)) throw new ApiError('STORED_FILE_DAMAGED')
  }

  /** Marks a damaged object, and refuses the request without waiting for the mark. */
  function refuseDamage(error: unknown): never {
    if (!(error instanceof ObjectDamaged)) throw error
    void reportDamage(ctx, error)
    throw new ApiError('STORED_FILE_DAMAGED')
  }

  function read(file: Recorded, encoding: Encoding | null): Buffer | Promise<Buffer> {
    const found = memory.read(file, encoding)
    return found instanceof Promise ? found.catch(refuseDamage) : found
  }

  async function* readAtOnce(file: Recorded): AsyncGenerator<Buffer> {
    yield await memory.read(file, null)
  }

  return {
    bytes,
    file(to, file, range, headers, whole_status = 200) {
      requireUnmarked(file)
      const { content_length } = file
      const { start, end } = range ?? { start: 0, end: content_length - 1 }
      const status = range === null ? whole_status : 206
      if (range !== null) headers.push('content-range', `bytes ${start}-${end}/${content_length}`)
      headers.push('content-length', String(end + 1 - start))
      if (to.method === 'HEAD') {
        sendResponse(to, status, headers, null)
      } else if (content_length <= MEMORY_FILE_BYTES_MAX) {
        return then(read(file, null), (all) =>
          sendResponse(to, status, headers, range === null ? all : all.subarray(start, end + 1)),
        )
      } else {
        const begin = () => beginResponse(to, status, headers)
        const blocks = readBlocks({ site_files, block_lists, file, range: { start, end } })
        return sendBlocks({ ctx, blocks, to, file, begin }).catch(refuseDamage)
      }
    },
    packed(to, file, encoding, headers, status = 200) {
      requireUnmarked(file)
      return then(read(file, encoding), (all) => bytes(to, status, headers, all))
    },
    unpacked(to, file, encoding, headers, status = 200) {
      requireUnmarked(file)
      const range = { start: 0, end: file.content_length - 1 }
      const is_short = file.content_length <= MEMORY_FILE_BYTES_MAX
      const blocks = is_short ? readAtOnce(file) : readBlocks({ site_files, block_lists, file, range })
      return sendUnpacked({ to, file, encoding, blocks, status, headers }).catch(refuseDamage)
    },
  }
}

/** Continues at once with a value that is no promise. Most requests find one, and a promise would cost them a turn. */
export function then<T, R>(value: T | Promise<T>, go: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(go) : go(value)
}

type Reading = { site_files: SiteFiles; block_lists: BlockLists; file: Recorded; range: ByteRange }

/** Reads a range of a long file block by block. Throws ObjectDamaged before a damaged block. */
async function* readBlocks({ site_files, block_lists, file, range }: Reading): AsyncGenerator<Buffer> {
  const opened = await site_files.open(file, await block_lists.of(file))
  try {
    const last = Math.floor(range.end / BLOCK_BYTES)
    for (let index = Math.floor(range.start / BLOCK_BYTES); index <= last; index++) {
      const block = await opened.readBlock(index)
      const position = index * BLOCK_BYTES
      yield block.subarray(Math.max(0, range.start - position), range.end + 1 - position)
    }
  } catch (error) {
    if (error instanceof ObjectDamaged) block_lists.forget(file.object_key)
    throw error
  } finally {
    await opened.close()
  }
}

type Sending = {
  ctx: Context
  blocks: AsyncGenerator<Buffer>
  to: Exchange
  file: Recorded
  /** Writes the head of the response. */
  begin: () => void
}

/** Rejects with ObjectDamaged when the first block is damaged; the head has not been written then. */
async function sendBlocks({ ctx, blocks, to, file: { object_key }, begin }: Sending): Promise<void> {
  try {
    for await (const block of blocks) {
      if (to.connection.socket.writableNeedDrain) await drained(to)
      if (to.is_over) return
      if (!to.is_response_begun) begin()
      to.connection.socket.write(block)
    }
    if (!to.is_over) endResponse(to)
  } catch (error) {
    if (!to.is_response_begun) throw error
    if (error instanceof ObjectDamaged) void reportDamage(ctx, error)
    else ctx.log.error({ err: error, object_key }, 'stored file cannot be read')
    breakResponse(to)
  }
}
