// The output of a lobby in a container. The engine keeps it, a few megabytes at most; the runner follows it and writes it
// into the lobby's log files, as the logger does for processes. A file beside them has the position up to which the
// engine's copy was written, so a later runner continues there. After a kill -9 of the runner, at most the lines of one
// batch are repeated.
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_STREAMS, type LogStream } from '../../../lobby-logs/files.ts'
import { outputPipe } from '../../../lobby-logs/local.ts'
import { isGone } from '../../../node/procfs.ts'
import {
  createLines,
  type OutputLines,
  takeChunk,
  takeEnd,
  takePause,
  takeUnfinished,
  UNFINISHED_MS,
} from '../../logs/lines.ts'
import { createLogWriter } from '../../logs/log-writer.ts'
import type { ContainerInspect } from './container.ts'
import { type EngineClient, EngineError } from './engine.ts'
import { type Frame, Frames, TerminalFrames } from './frames.ts'

const POSITION_FILE = 'engine-log.json'
/** Bytes a second of one lobby that the runner reads from the engine. More output is rotated away by the engine. */
const READ_BYTES_PER_SECOND_MAX = 4 * 1024 ** 2
/** Pause between two batches of output. The engine sends each line apart, and a batch costs two writes to the disk. */
const BATCH_MS = 10
const BATCH_CHUNKS_MAX = 10_000
/** How often dropped lines are reported, and unfinished ones kept. */
const PAUSE_MS = 1_000
/**
 * How long a stream may stay open after its container has ended. Podman never closes one whose container ended between two
 * steps of the request.
 */
const LATE_STREAM_MS_MAX = 1_000
/** Pause after the engine closed a stream of a container that still runs. */
const RETRY_MS = 1_000
const NS_DIGITS = 9

/** `ts`: the engine's time of the last written message. `count`: written messages of that time. */
type Position = { ts: string; count: number }
type Stream = {
  lines: OutputLines
  write: (bytes: Buffer) => void
  /** Up to the last message after which no line was incomplete. */
  written: Position
  read: Position
  /** The last output, by performance.now(). */
  arrived_ms: number
}

export type OutputOptions = {
  engine: EngineClient
  container: string
  folder: string
  now: () => number
  onFailure: (text: string) => void
}

/** While the output of a lobby is not whole, a file in the place of its output pipe says so (lobby-logs/local.ts). */
export function markOutputOpen(folder: string): void {
  for (const stream of LOG_STREAMS) {
    const mark = outputPipe(folder, stream)
    mkdirSync(dirname(mark), { recursive: true, mode: 0o700 })
    writeFileSync(mark, '', { mode: 0o600 })
  }
}

export function markOutputWhole(folder: string): void {
  for (const stream of LOG_STREAMS) rmSync(outputPipe(folder, stream), { force: true })
}

export class ContainerOutput {
  readonly #options: OutputOptions
  readonly #streams: Record<LogStream, Stream>
  readonly #closing = new AbortController()
  /** Ends the stream of a container that has ended. What is missing is read without a stream. */
  readonly #ended = new AbortController()
  readonly #timer: NodeJS.Timeout
  /** Null: not known yet. */
  #has_terminal: boolean | null = null
  /** Resolves when the container has ended and its output is written, or after `close`. */
  readonly done: Promise<void>

  constructor(options: OutputOptions) {
    this.#options = options
    const positions = readPositions(options.folder)
    const open = (stream: LogStream): Stream => ({
      lines: createLines(0),
      write: createLogWriter(options.folder, stream, options.onFailure),
      written: { ...positions[stream] },
      read: { ...positions[stream] },
      arrived_ms: 0,
    })
    this.#streams = { stdout: open('stdout'), stderr: open('stderr') }
    this.#timer = setInterval(() => this.#flush(options.now()), PAUSE_MS)
    this.#timer.unref()
    this.done = this.#follow().finally(() => clearInterval(this.#timer))
  }

  /** Stops to follow. A later runner continues. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.done
  }

  /** The container has ended. Resolves when its output is written, or after this time at most. */
  async whole(ms_max: number): Promise<void> {
    const late = new AbortController()
    const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal: late.signal }).catch(() => undefined)
    const is_late = await Promise.race([this.done.then(() => false), pause(LATE_STREAM_MS_MAX).then(() => true)])
    if (is_late) {
      this.#ended.abort()
      await Promise.race([this.done, pause(ms_max - LATE_STREAM_MS_MAX)])
    }
    late.abort()
  }

  async #follow(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#readWhileRunning()
        if (this.#closing.signal.aborted) return
        if (!(await this.#isRunning())) {
          // What the engine stored while the stream was closed.
          await this.#read('0', this.#closing.signal)
          this.#end()
          return
        }
      } catch (error) {
        if (this.#closing.signal.aborted) return
        if (error instanceof EngineError && error.status === 404) return this.#end()
        // The engine restarts, or has closed the connection: it keeps the output.
      }
      await sleep(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
  }

  async #readWhileRunning(): Promise<void> {
    const { signal } = this.#ended
    try {
      if (!signal.aborted) await this.#read('1', AbortSignal.any([this.#closing.signal, signal]))
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #isRunning(): Promise<boolean> {
    return (await this.#inspect())?.State.Running ?? false
  }

  async #hasTerminal(): Promise<boolean> {
    this.#has_terminal ??= (await this.#inspect())?.Config.Tty ?? null
    return this.#has_terminal ?? false
  }

  #inspect(): Promise<ContainerInspect | null> {
    return this.#options.engine.find<ContainerInspect>(`/containers/${this.#options.container}/json`)
  }

  async #read(follow: '0' | '1', signal: AbortSignal): Promise<void> {
    for (const stream of LOG_STREAMS) {
      // A line that was read in part is read again from its beginning.
      const { written, lines } = this.#streams[stream]
      this.#streams[stream].read = { ts: '', count: 0 }
      lines.partial = Buffer.alloc(0)
      lines.is_skipping = false
      this.#streams[stream].written = written
    }
    const { engine, container } = this.#options
    const frames = (await this.#hasTerminal()) ? new TerminalFrames() : new Frames()
    const query = { follow, stdout: '1', stderr: '1', timestamps: '1', since: this.#since() }
    const response = await engine.stream(`/containers/${container}/logs`, query, signal)
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const bytes = Buffer.concat([chunk, ...waiting(response)])
      this.#take(frames.take(bytes))
      await sleep(Math.max(BATCH_MS, (bytes.length / READ_BYTES_PER_SECOND_MAX) * 1_000))
    }
    this.#take(frames.end())
    if (!response.complete) await once(response, 'close').catch(() => undefined)
  }

  /** The earlier of both positions, in seconds with nanoseconds. */
  #since(): string {
    const earliest = LOG_STREAMS.map((stream) => this.#streams[stream].written.ts).sort()[0] ?? ''
    if (earliest === '') return '0'
    const nanoseconds = /\.(\d+)/.exec(earliest)?.[1] ?? ''
    return `${Math.floor(Date.parse(earliest) / 1_000)}.${nanoseconds.padEnd(NS_DIGITS, '0')}`
  }

  #take(frames: readonly Frame[]): void {
    const out: Record<LogStream, Buffer[]> = { stdout: [], stderr: [] }
    for (const { stream, ts, bytes } of frames) {
      const state = this.#streams[stream]
      state.read = ts === state.read.ts ? { ts, count: state.read.count + 1 } : { ts, count: 1 }
      if (!isAfter(state.read, state.written)) continue
      state.arrived_ms = performance.now()
      out[stream].push(takeChunk(state.lines, bytes, Date.parse(ts)))
      if (state.lines.partial.length === 0 && !state.lines.is_skipping) state.written = { ...state.read }
    }
    let has_written = false
    for (const stream of LOG_STREAMS) {
      const bytes = Buffer.concat(out[stream])
      if (bytes.length === 0) continue
      this.#streams[stream].write(bytes)
      has_written = true
    }
    if (has_written) this.#keepPosition()
  }

  #flush(now_ms: number): void {
    for (const stream of LOG_STREAMS) {
      const state = this.#streams[stream]
      const { lines, write, read, arrived_ms } = state
      if (lines.dropped > 0) write(takePause(lines, now_ms))
      if (lines.partial.length === 0 || performance.now() - arrived_ms < UNFINISHED_MS) continue
      const unfinished = takeUnfinished(lines, Date.parse(read.ts))
      if (unfinished.length === 0) continue
      write(unfinished)
      state.written = { ...read }
      this.#keepPosition()
    }
  }

  #end(): void {
    for (const stream of LOG_STREAMS) {
      const { lines, write, read } = this.#streams[stream]
      write(takeEnd(lines, read.ts === '' ? this.#options.now() : Date.parse(read.ts)))
      this.#streams[stream].written = { ...read }
    }
    this.#keepPosition()
    markOutputWhole(this.#options.folder)
  }

  #keepPosition(): void {
    const path = join(this.#options.folder, POSITION_FILE)
    try {
      const { stdout, stderr } = this.#streams
      writeFileSync(`${path}.new`, JSON.stringify({ stdout: stdout.written, stderr: stderr.written }), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch (error) {
      // A full disk also loses the lines.
      if (!isGone(error)) this.#options.onFailure(`position in the log of ${this.#options.folder}: ${String(error)}`)
    }
  }
}

/** What has arrived. The iteration of a stream returns each line apart. */
function* waiting(response: IncomingMessage): Generator<Buffer> {
  for (let taken = 0; taken < BATCH_CHUNKS_MAX; taken++) {
    const chunk = response.read() as Buffer | null
    if (chunk === null) return
    yield chunk
  }
}

/** The engine prints all times with the same number of digits, so their order is that of their texts. */
function isAfter(one: Position, other: Position): boolean {
  return one.ts === other.ts ? one.count > other.count : one.ts > other.ts
}

function readPositions(folder: string): Record<LogStream, Position> {
  const start = { stdout: { ts: '', count: 0 }, stderr: { ts: '', count: 0 } }
  try {
    return { ...start, ...(JSON.parse(readFileSync(join(folder, POSITION_FILE), 'utf8')) as typeof start) }
  } catch (error) {
    if (isGone(error) || error instanceof SyntaxError) return start
    throw error
  }
}
