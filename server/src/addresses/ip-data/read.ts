// The files of address data, read. What is parsed is parsed by a thread of its own (reader.ts), one file at a time and
// within bounds.
import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { unpackAsNumbers } from './as-numbers.ts'
import type { AddressList } from './list.ts'
import { type Mmdb, openMmdb } from './mmdb.ts'
import type { RangeTable } from './ranges.ts'

export type ParsedList = { list: AddressList; bad_lines: number }
export type ReaderTask = { kind: 'list'; path: string } | ({ kind: 'as_numbers'; packed_path: string } & SeedPaths)
export type ReaderAnswer = { list: ParsedList } | { as_numbers: RangeTable } | { failure: string }

type SeedPaths = { ipv4_path: string; ipv6_path: string }

/** What the npm package of the platform has in place of the files. In a checkout the first start makes it. */
const PACKED_SEED = fileURLToPath(new URL('../../../as-numbers.bin', import.meta.url))
/** Heap of the thread that parses, in MB. */
const READER_MEMORY_MB_MAX = 1_024

/** Throws an Error with a sentence. */
export async function readMmdb(path: string): Promise<Mmdb> {
  return openMmdb(await readFile(path))
}

/** Throws an Error with a sentence. */
export async function readList(path: string): Promise<ParsedList> {
  const answer = await askReader({ kind: 'list', path })
  if ('list' in answer) return answer.list
  throw new Error(failureOf(answer))
}

/**
 * The AS numbers of all addresses, which come with the platform; null in a checkout without the optional dependency that
 * has them. Throws an Error with a sentence. A test has a `packed_path` of its own.
 */
export async function readSeed(packed_path = PACKED_SEED): Promise<RangeTable | null> {
  const paths = seedPaths()
  const packed = await readPacked(packed_path, paths)
  if (packed !== null) return packed
  if (paths === null) return null
  const answer = await askReader({ kind: 'as_numbers', packed_path, ...paths })
  if ('as_numbers' in answer) return answer.as_numbers
  throw new Error(failureOf(answer))
}

/** Null where there is none, and in a checkout also where it is damaged, or older than the files. */
async function readPacked(packed_path: string, paths: SeedPaths | null): Promise<RangeTable | null> {
  try {
    if (paths !== null && (await stat(paths.ipv4_path)).mtimeMs > (await stat(packed_path)).mtimeMs) return null
    return unpackAsNumbers(await readFile(packed_path))
  } catch (error) {
    if (paths !== null || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function seedPaths(): SeedPaths | null {
  try {
    return {
      ipv4_path: fileURLToPath(import.meta.resolve('@ip-location-db/asn/asn-ipv4-num.csv')),
      ipv6_path: fileURLToPath(import.meta.resolve('@ip-location-db/asn/asn-ipv6-num.csv')),
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

function askReader(task: ReaderTask): Promise<ReaderAnswer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./reader.ts', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: READER_MEMORY_MB_MAX },
    })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('its reader ended without a word')))
  })
}

function failureOf(answer: ReaderAnswer): string {
  return 'failure' in answer ? answer.failure : 'its reader answered something else'
}
