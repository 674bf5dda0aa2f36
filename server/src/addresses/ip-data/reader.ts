// A thread that reads one file and ends: half a second of parsing must not stand in the way of those who want a seat. What
// it makes are typed arrays, which are handed over and not copied.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { parentPort, threadId, workerData } from 'node:worker_threads'
import { packAsNumbers, parseAsNumbers } from './as-numbers.ts'
import { parseList } from './list.ts'
import type { RangeTable } from './ranges.ts'
import type { ReaderAnswer, ReaderTask } from './read.ts'

const task = workerData as ReaderTask

function carryOut(): { answer: ReaderAnswer; table: RangeTable | null } {
  try {
    if (task.kind === 'list') {
      const list = parseList(readFileSync(task.path, 'utf8'))
      return { answer: { list }, table: list.list.ranges }
    }
    const as_numbers = parseAsNumbers(readFileSync(task.ipv4_path, 'latin1'), readFileSync(task.ipv6_path, 'latin1'))
    return { answer: { as_numbers }, table: as_numbers }
  } catch (error) {
    return { answer: { failure: (error as Error).message }, table: null }
  }
}

/** The next start reads this file in a tenth of the time. One that cannot be written is not missed. */
function keepPacked({ path, bytes }: { path: string; bytes: Uint8Array }): void {
  const draft = `${path}.${process.pid}-${threadId}`
  try {
    writeFileSync(draft, bytes)
    renameSync(draft, path)
  } catch {
    rmSync(draft, { force: true })
  }
}

const { answer, table } = carryOut()
// Its columns are no longer here once they have been handed over.
const packed =
  task.kind === 'as_numbers' && table !== null ? { path: task.packed_path, bytes: packAsNumbers(table) } : null
const columns =
  table === null ? [] : [table.ipv4, table.ipv6].flatMap(({ starts, ends, values }) => [starts, ends, values])
parentPort?.postMessage(
  answer,
  columns.map(({ buffer }) => buffer as ArrayBuffer),
)
if (packed !== null) keepPacked(packed)
