// The rows of an open log, as the worker has parsed them. They are outside React: a view draws them at most once a frame.
import type { FeedState } from '../../api/socket.ts'
import type { FromWorker, LogFilter, LogRow, ToWorker } from './log-messages.ts'

export type RawLines = readonly { ts: string; text: string }[]

/** Where the lines of one stream come from. `open` returns a function that closes it. */
export type LogSource = {
  /** What people call the stream, for example `stdout`. */
  name: string
  /** The letter of links to its lines, for example L for `#L12`. */
  letter: string
  open: (on: { lines: (lines: RawLines) => void; state: (state: FeedState) => void; end: () => void }) => () => void
}

export class LogStore {
  revision = 0
  /** Why the filter cannot be used. */
  filter_error: string | null = null
  /** Rows that were left out because the log is too long for the page. */
  left_out = 0
  readonly states: FeedState[] = []
  readonly ended: boolean[] = []
  /** Row numbers, in the order in which they are shown. */
  shown: number[] = []
  #rows: LogRow[] = []
  readonly #worker = new Worker(new URL('./log-worker.ts', import.meta.url), { type: 'module' })
  readonly #listeners = new Set<() => void>()
  readonly #closings: (() => void)[] = []
  #is_scheduled = false
  #is_closed = false

  constructor(sources: readonly LogSource[]) {
    this.#worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => this.#take(data))
    for (const [stream, source] of sources.entries()) {
      this.states[stream] = 'connecting'
      this.#closings.push(
        source.open({
          lines: (lines) => this.#send({ kind: 'append', stream, lines }),
          state: (state) => {
            if (this.ended[stream] !== true) this.states[stream] = state
            this.#schedule()
          },
          end: () => {
            this.ended[stream] = true
            this.#schedule()
          },
        }),
      )
    }
  }

  /** The row at an index of what is shown. */
  at(index: number): LogRow | undefined {
    const number = this.shown[index]
    return number === undefined ? undefined : this.#rows[number - this.left_out]
  }

  get count(): number {
    return this.#rows.length
  }

  filter(filter: LogFilter): void {
    this.#send({ kind: 'filter', filter })
  }

  /** The index of the first shown row that is not before a moment. */
  placeOfMoment(ts_ms: number): number {
    let [low, high] = [0, this.shown.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.at(middle)!.ts_ms < ts_ms) low = middle + 1
      else high = middle
    }
    return Math.min(low, this.shown.length - 1)
  }

  /** The index of a line of a stream. -1: it is not shown. */
  indexOfLine(stream: number, line: number): number {
    return this.shown.findIndex((_, index) => {
      const row = this.at(index)
      return row?.stream === stream && row.line === line
    })
  }

  /** The next error from an index on, in the direction of `step`. -1: there is none. */
  nextError(from: number, step: 1 | -1): number {
    for (let index = from + step; index >= 0 && index < this.shown.length; index += step) {
      if (this.at(index)?.level === 'error') return index
    }
    return -1
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#is_closed = true
    for (const close of this.#closings) close()
    this.#worker.terminate()
  }

  #send(message: ToWorker): void {
    if (!this.#is_closed) this.#worker.postMessage(message)
  }

  #take(message: FromWorker): void {
    if (message.kind === 'filtered') {
      this.filter_error = message.error
      this.shown = [...message.shown]
    } else {
      for (const row of message.rows) this.#rows.push(row)
      if (message.first > this.left_out) {
        this.#rows = this.#rows.slice(message.first - this.left_out)
        this.left_out = message.first
      }
      if (message.shown !== null) this.shown = [...message.shown]
      for (const number of message.added ?? []) this.shown.push(number)
    }
    this.#schedule()
  }

  #schedule(): void {
    if (this.#is_scheduled) return
    this.#is_scheduled = true
    requestAnimationFrame(() => {
      this.#is_scheduled = false
      this.revision++
      for (const listener of this.#listeners) listener()
    })
  }
}
