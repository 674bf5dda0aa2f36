// A thread that reads one file and ends: half a second of parsing must not stand in the way of those who want a seat. What
// it makes are typed arrays, which are handed over and not copied.
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { parseAsNumbers } from './as-numbers.ts'
import { parseList } from './list.ts'
import type { RangeTable } from './ranges.ts'
import type { ReaderAnswer, ReaderTask } from './read.ts'

function carryOut(task: ReaderTask): { answer: ReaderAnswer; table: RangeTable | null } {
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

const { answer, table } = carryOut(workerData as ReaderTask)
const columns =
  table === null ? [] : [table.ipv4, table.ipv6].flatMap(({ starts, ends, values }) => [starts, ends, values])
parentPort?.postMessage(
  answer,
  columns.map(({ buffer }) => buffer as ArrayBuffer),
)
