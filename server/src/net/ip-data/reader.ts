// A thread that reads one list and ends: half a second of parsing must not stand in the way of those who want a seat.
// What it makes are typed arrays, which are handed over and not copied.
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { parseList } from './list.ts'
import type { ReaderAnswer, ReaderTask } from './read.ts'

function answerTo({ path }: ReaderTask): ReaderAnswer {
  try {
    return { parsed: parseList(readFileSync(path, 'utf8')) }
  } catch (error) {
    return { failure: (error as Error).message }
  }
}

parentPort?.postMessage(answerTo(workerData as ReaderTask))
