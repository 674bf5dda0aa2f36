// The logger: a program of its own, one for each platform, that reads the output of all lobbies and keeps a bounded part.
//
// A lobby writes into two named pipes, which it holds open for reading too. So neither a crash of the logger nor one of
// the runner breaks them. Without a reader they fill up (64 KiB), and the lobby waits in its next write until there is one.
// The logger outlives the runner and needs no memory of its own: at its start it opens every pipe it finds, and later ones
// are named to it through its control pipe. A pipe ends with the last process of its lobby. Then the logger removes it,
// which shows readers that the log is whole.
//
//   node logger.ts <lobbies folder>       messages: `attach <lobby id>`, `runner <pid> <start time>`, `bye`
//
// It ends when no lobby is left and no runner lives, or when a newer logger has replaced it.
import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import { LOG_STREAMS, type LogStream } from '../../lobby-logs/files.ts'
import { folderOfLobby, formerOutputPipe, isLobbyId, outputPipe, outputPipesFolder } from '../../lobby-logs/local.ts'
import { codeOf, isAlive, isGone, readBootId } from '../../node/procfs.ts'
import { controlPipe, loggerPidFile } from './control.ts'
import { createLines, takeChunk, takeEnd, takePause, takeUnfinished, UNFINISHED_MS } from './lines.ts'
import { createLogWriter } from './log-writer.ts'

/** Bytes a second read from one stream. A lobby that writes more waits in its writes. */
const READ_BYTES_PER_SECOND_MAX = 4 * 1024 * 1024
/** Bytes a second read from all streams. Bounds the processor time of the logger. */
const READ_BYTES_PER_SECOND_OF_ALL_MAX = 32 * 1024 * 1024
/** Bytes a stream may read in each tick, whatever the number of streams: the content of one pipe. */
const READ_BYTES_PER_TICK_MIN = 64 * 1024
/** Reads of a newly opened pipe. Together they take more than a pipe holds, so a longer output has a living writer. */
const READS_AT_OPEN_MAX = 32
const TICK_MS = 100
const HOUSEKEEPING_MS = 1_000
/** How long it stays without a runner and without a lobby, so that a restarted runner finds it. */
const IDLE_MS_MAX = 10_000
/** Bytes of an incomplete message that are kept. Messages are below 100 bytes. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** How long a new logger waits for the former one. A logger of an older release notices its replacement after a second. */
const FORMER_WAIT_MS_MAX = 3_000
const FORMER_POLL_MS = 50

/** `arrived_ms`: the last output, by performance.now(); null: no line is unfinished, or it was kept. */
type Stream = {
  socket: Socket
  allowance_bytes: number
  arrived_ms: number | null
  flushDropped: () => void
  flushUnfinished: () => void
}

class Logger {
  readonly #lobbies_folder: string
  readonly #boot_id = readBootId()
  /** Open output pipes, by path. */
  readonly #streams = new Map<string, Stream>()
  /** Runs while a stream has less than its full allowance. */
  readonly #refilling = createTimerWhileNeeded(TICK_MS, () => this.#refill())
  /** Runs while a stream has an unfinished line. */
  readonly #finishing = createTimerWhileNeeded(TICK_MS, () => this.#keepUnfinished())
  #runner: { pid: number; start_time: string } | null = null
  #idle_since_ms = performance.now()

  constructor(lobbies_folder: string) {
    this.#lobbies_folder = lobbies_folder
  }

  async run(): Promise<void> {
    const former = readPid(this.#lobbies_folder)
    if (!becomeLogger(this.#lobbies_folder)) return
    // Two readers of one pipe would each get a part of the output.
    for (let waited_ms = 0; waited_ms < FORMER_WAIT_MS_MAX && isLogger(former); waited_ms += FORMER_POLL_MS) {
      await sleep(FORMER_POLL_MS)
    }
    // In this order: pipes that are made before the control pipe is open are found, later ones are named through it.
    listen(this.#lobbies_folder, (message) => this.#handleMessage(message))
    for (const lobby_id of lobbiesWithPipes(this.#lobbies_folder)) this.#attach(lobby_id)
    setInterval(() => this.#housekeep(), HOUSEKEEPING_MS)
  }

  #handleMessage(message: string): void {
    const [verb, first = '', second = ''] = message.split(' ')
    if (verb === 'attach' && isLobbyId(first)) this.#attach(first)
    else if (verb === 'runner') this.#runner = { pid: Number(first), start_time: second }
    else if (verb === 'bye') this.#runner = null
    if (verb === 'bye') this.#endIfIdle(0)
  }

  #attach(lobby_id: string): void {
    const folder = folderOfLobby(this.#lobbies_folder, lobby_id)
    for (const stream of LOG_STREAMS) {
      this.#open(folder, stream, outputPipe(folder, stream))
      this.#open(folder, stream, formerOutputPipe(folder, stream))
    }
  }

  #open(folder: string, stream: LogStream, pipe: string): void {
    if (this.#streams.has(pipe)) return
    const fd = openPipe(pipe)
    if (fd === null) return
    const lines = createLines(Date.now())
    const write = createLogWriter(folder, stream, logError)
    // A pipe without a writer at the time of the open reports its end to a read, and never to a poll.
    if (readNow(fd, (chunk) => write(takeChunk(lines, chunk, Date.now())))) {
      write(takeEnd(lines, Date.now()))
      closeSync(fd)
      rmSync(pipe, { force: true })
      return
    }
    const socket = new Socket({ fd, readable: true, writable: false })
    const state: Stream = {
      socket,
      allowance_bytes: READ_BYTES_PER_SECOND_MAX,
      arrived_ms: null,
      flushDropped: () => write(takePause(lines, Date.now())),
      flushUnfinished: () => write(takeUnfinished(lines, Date.now())),
    }
    const arrived = (): void => {
      state.arrived_ms = lines.partial.length === 0 ? null : performance.now()
      if (state.arrived_ms !== null) this.#finishing.need()
    }
    arrived()
    this.#streams.set(pipe, state)
    socket.on('data', (chunk: Buffer) => {
      write(takeChunk(lines, chunk, Date.now()))
      arrived()
      state.allowance_bytes -= chunk.length
      this.#refilling.need()
      if (state.allowance_bytes <= 0) socket.pause()
    })
    socket.on('error', (error) => logError(`${pipe}: ${error.message}`))
    socket.on('close', () => {
      write(takeEnd(lines, Date.now()))
      this.#streams.delete(pipe)
      rmSync(pipe, { force: true })
    })
  }

  /** Returns whether some stream still has less than its full allowance. */
  #refill(): boolean {
    const share = READ_BYTES_PER_SECOND_OF_ALL_MAX / Math.max(1, this.#streams.size)
    const per_second = Math.min(READ_BYTES_PER_SECOND_MAX, share)
    const per_tick = Math.max(READ_BYTES_PER_TICK_MIN, (per_second * TICK_MS) / 1000)
    let is_needed = false
    for (const state of this.#streams.values()) {
      state.allowance_bytes = Math.min(per_second, state.allowance_bytes + per_tick)
      if (state.allowance_bytes > 0 && state.socket.isPaused()) state.socket.resume()
      if (state.allowance_bytes < per_second) is_needed = true
    }
    return is_needed
  }

  /** Returns whether some stream still has a line that may become whole. */
  #keepUnfinished(): boolean {
    const quiet_ms = performance.now() - UNFINISHED_MS
    const waiting = [...this.#streams.values()].filter(({ arrived_ms }) => arrived_ms !== null)
    // A stream that is paused has output that was not read yet.
    const quiet = waiting.filter(({ arrived_ms, socket }) => arrived_ms! <= quiet_ms && !socket.isPaused())
    for (const state of quiet) {
      state.arrived_ms = null
      state.flushUnfinished()
    }
    return quiet.length < waiting.length
  }

  #housekeep(): void {
    for (const state of this.#streams.values()) state.flushDropped()
    // When two loggers start at once, the later one stays. The other one finds another pid in the file.
    if (readPid(this.#lobbies_folder) !== process.pid) process.exit(0)
    this.#endIfIdle(IDLE_MS_MAX)
  }

  #endIfIdle(idle_ms_max: number): void {
    const boot_id = this.#boot_id
    const is_needed =
      this.#streams.size > 0 || (this.#runner !== null && isAlive({ ...this.#runner, boot_id }, boot_id))
    if (is_needed) this.#idle_since_ms = performance.now()
    else if (performance.now() - this.#idle_since_ms >= idle_ms_max || idle_ms_max === 0) process.exit(0)
  }
}

function lobbiesWithPipes(lobbies_folder: string): Set<string> {
  const names = readdirSync(outputPipesFolder(lobbies_folder)).map((name) => name.slice(0, name.lastIndexOf('.')))
  return new Set(names.filter(isLobbyId))
}

/** False when another logger reads the control pipe already. */
function becomeLogger(lobbies_folder: string): boolean {
  try {
    closeSync(openSync(controlPipe(lobbies_folder), constants.O_WRONLY | constants.O_NONBLOCK))
    return false
  } catch (error) {
    // No process reads it.
    if (codeOf(error) !== 'ENXIO') throw error
  }
  const path = loggerPidFile(lobbies_folder)
  writeFileSync(`${path}.${process.pid}`, String(process.pid))
  renameSync(`${path}.${process.pid}`, path)
  return true
}

function readPid(lobbies_folder: string): number {
  try {
    return Number(readFileSync(loggerPidFile(lobbies_folder), 'latin1'))
  } catch (error) {
    if (isGone(error)) return 0
    throw error
  }
}

/** Whether a process of this number is a logger, and not a later process with the same number. */
function isLogger(pid: number): boolean {
  try {
    return /\blogger\.[jt]s\b/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** The control pipe is open for writing too, so it does not end with the runner. */
function listen(lobbies_folder: string, onMessage: (message: string) => void): void {
  const fd = openSync(controlPipe(lobbies_folder), constants.O_RDWR | constants.O_NONBLOCK)
  const socket = new Socket({ fd, readable: true, writable: false })
  let rest = ''
  socket.on('data', (chunk: Buffer) => {
    const messages = (rest + chunk.toString('latin1')).split('\n')
    rest = (messages.pop() ?? '').slice(-MESSAGE_BYTES_MAX)
    for (const message of messages) onMessage(message)
  })
}

/** Null when there is no pipe, or another kind of file. */
function openPipe(path: string): number | null {
  try {
    if (!statSync(path).isFIFO()) return null
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** Reads the content of a pipe without waiting. Returns true at the end of the pipe. */
function readNow(fd: number, take: (chunk: Buffer) => void): boolean {
  const buffer = Buffer.alloc(READ_BYTES_PER_TICK_MIN)
  for (let reads = 0; reads < READS_AT_OPEN_MAX; reads++) {
    try {
      const length = readSync(fd, buffer)
      if (length === 0) return true
      take(buffer.subarray(0, length))
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return false
      throw error
    }
  }
  return false
}

/** The standard error goes into a file beside the control pipe. */
function logError(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`)
}

if (import.meta.main) {
  const lobbies_folder = process.argv[2]
  if (lobbies_folder === undefined) throw new Error('The logger needs the folder of the lobbies as its argument.')
  await new Logger(lobbies_folder).run()
}
