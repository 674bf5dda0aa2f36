// Which test file an event of the runner belongs to. The runner knows the entry of the process, which may be a batch of files
// (batches.ts): there the file is the suite of the outermost level that began last.
import { relative } from 'node:path'
import { isBatch } from '../run/batches.ts'

export type EventData = {
  file?: string
  entryFile?: string
  name: string
  nesting: number
  details?: { type?: string }
}

/** `null`: the event is about no test, or about the process of a batch. */
export type EventFile = { file: string; is_file: boolean }

/** The events of dequeue and complete come at once, the others in the order of the entries. Each order has its own object. */
export class EventFiles {
  /** By the entry of a batch. */
  readonly #current = new Map<string, string>()

  /** `is_beginning`: the event is the first of its test in this order. */
  fileOf(data: EventData, is_beginning: boolean): EventFile {
    // `file` is where a test is written, which may be a step that test files share. Only the events of tests have the entry.
    const entry = data.entryFile ?? data.file!
    if (!isBatch(entry)) return { file: relative('.', entry), is_file: data.entryFile === undefined }
    if (data.entryFile === undefined) return { file: this.#current.get(entry) ?? relative('.', entry), is_file: false }
    const is_outermost = data.nesting === 0 && data.name.includes('.test.')
    if (is_outermost && is_beginning) this.#current.set(entry, data.name)
    return { file: this.#current.get(entry) ?? data.name, is_file: is_outermost }
  }
}
