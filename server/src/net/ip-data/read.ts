// The files of address data, read. Lists are parsed by a thread of their own (reader.ts), one at a time and within bounds.
import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import type { AddressList } from './list.ts'
import { type Mmdb, openMmdb } from './mmdb.ts'

export type ReaderTask = { path: string }
export type ParsedList = { list: AddressList; bad_lines: number }
export type ReaderAnswer = { parsed: ParsedList } | { failure: string }

/** Of the thread that parses a list. */
const READER_MEMORY_MB_MAX = 1_024

/** Throws an Error with a sentence. */
export async function readMmdb(path: string): Promise<Mmdb> {
  return openMmdb(await readFile(path))
}

/** Throws an Error with a sentence. */
export async function readList(path: string): Promise<ParsedList> {
  const answer = await new Promise<ReaderAnswer>((resolve, reject) => {
    const worker = new Worker(new URL('./reader.ts', import.meta.url), {
      workerData: { path } satisfies ReaderTask,
      resourceLimits: { maxOldGenerationSizeMb: READER_MEMORY_MB_MAX },
    })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('its reader ended without a word')))
  })
  if ('failure' in answer) throw new Error(answer.failure)
  return answer.parsed
}
