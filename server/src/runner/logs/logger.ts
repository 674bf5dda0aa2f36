// The logger: a program of its own, one a platform, that reads what lobbies write and keeps a bounded part of it.
//
// A lobby writes into two named pipes of its own, which it holds open for reading too. So nothing that happens to
// the logger or the runner breaks them: without a reader they fill up (64 KiB) and the lobby waits in its next write
// until there is one again. The logger is neither a child of the runner in any way that matters nor told what it must
// remember: at its start it opens every pipe it finds, later ones are named to it through a pipe of its own. A pipe
// ends when the last process of its lobby is gone; then it is removed, which tells others that the log is whole.
//
//   node logger.ts <lobbies folder>       messages: `attach <lobby id>`, `runner <pid> <start time>`, `bye`
//
// It ends when no lobby is left and no runner lives, or when a newer logger has taken its place.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  LOG_FILE_BYTES_MAX,
  LOG_FILES_MAX,
  LOG_STREAMS,
  type LogStream,
  logFile,
  newestFile,
} from '../../lobby-logs/files.ts'
import { folderOfLobby, formerOutputPipe, isLobbyId, outputPipe, outputPipesFolder } from '../../lobby-logs/local.ts'
import { codeOf, isAlive, isGone, readBootId } from '../../procfs.ts'
import { createTimerWhileNeeded } from '../../timer-while-needed.ts'
import { unfinishedFolder } from '../drivers/unfinished.ts'
import { controlPipe, loggerPidFile } from './control.ts'
import { createLines, takeChunk, takeEnd, takePause } from './lines.ts'

/** How much of a flood is looked at: of one stream, and of all together. What is not read yet, the lobby waits with. */
const READ_BYTES_PER_SECOND_MAX = 4 * 1024 * 1024
const READ_BYTES_PER_SECOND_OF_ALL_MAX = 32 * 1024 * 1024
const READ_BYTES_PER_TICK_MIN = 64 * 1024
/** More than fits into a pipe: whoever has filled it by then again is alive. */
const READS_AT_OPEN_MAX = 32
const TICK_MS = 100
const HOUSEKEEPING_MS = 1_000
/** Without a runner and without a lobby it stays for this long: a runner that is being restarted finds it. */
const IDLE_MS_MAX = 10_000
const MESSAGE_BYTES_MAX = 64 * 1024
/** A logger of an older platform notices within a second that it is not named any more. */
const FORMER_WAIT_MS_MAX = 3_000
const FORMER_POLL_MS = 50

type Stream = { socket: Socket; allowance_bytes: number; tell: () => void; end: () => void }

async function runLogger(lobbies_folder: string): Promise<void> {
  const boot_id = readBootId()
  const streams = new Map<string, Stream>()
  let runner: { pid: number; start_time: string } | null = null
  let idle_since_ms = performance.now()
  /** Runs while a stream may not read as much as it might in a second. */
  const refilling = createTimerWhileNeeded(TICK_MS, refill)

  function attach(lobby_id: string): void {
    const folder = folderOfLobby(lobbies_folder, lobby_id)
    for (const stream of LOG_STREAMS) {
      open(folder, stream, outputPipe(folder, stream))
      open(folder, stream, formerOutputPipe(folder, stream))
    }
  }

  function open(folder: string, stream: LogStream, pipe: string): void {
    if (streams.has(pipe)) return
    const fd = openPipe(pipe)
    if (fd === null) return
    const lines = createLines(Date.now())
    const keep = createKeeper(folder, stream)
    // A pipe that nobody writes into any more when it is opened never says so to who waits for it, only to who reads.
    if (readNow(fd, (chunk) => keep(takeChunk(lines, chunk, Date.now())))) {
      keep(takeEnd(lines, Date.now()))
      closeSync(fd)
      rmSync(pipe, { force: true })
      return
    }
    const socket = new Socket({ fd, readable: true, writable: false })
    const take = (chunk: Buffer): void => {
      keep(takeChunk(lines, chunk, Date.now()))
      state.allowance_bytes -= chunk.length
      refilling.need()
      if (state.allowance_bytes <= 0) socket.pause()
    }
    const state: Stream = {
      socket,
      allowance_bytes: READ_BYTES_PER_SECOND_MAX,
      tell: () => keep(takePause(lines, Date.now())),
      end() {
        keep(takeEnd(lines, Date.now()))
        streams.delete(pipe)
        rmSync(pipe, { force: true })
      },
    }
    streams.set(pipe, state)
    socket.on('data', take)
    socket.on('error', (error) => say(`${pipe}: ${error.message}`))
    socket.on('close', () => state.end())
  }

  function obey(message: string): void {
    const [verb, first = '', second = ''] = message.split(' ')
    if (verb === 'attach' && isLobbyId(first)) attach(first)
    else if (verb === 'runner') runner = { pid: Number(first), start_time: second }
    else if (verb === 'bye') runner = null
    if (verb === 'bye') endIfIdle(0)
  }

  /** Returns whether some stream is not full yet. */
  function refill(): boolean {
    const share = READ_BYTES_PER_SECOND_OF_ALL_MAX / Math.max(1, streams.size)
    const per_second = Math.min(READ_BYTES_PER_SECOND_MAX, share)
    const per_tick = Math.max(READ_BYTES_PER_TICK_MIN, (per_second * TICK_MS) / 1000)
    let is_needed = false
    for (const state of streams.values()) {
      state.allowance_bytes = Math.min(per_second, state.allowance_bytes + per_tick)
      if (state.allowance_bytes > 0 && state.socket.isPaused()) state.socket.resume()
      if (state.allowance_bytes < per_second) is_needed = true
    }
    return is_needed
  }

  function keepHouse(): void {
    for (const state of streams.values()) state.tell()
    // Of two that were started at once the later one stays: the other sees here that it is not named any more.
    if (readPid(lobbies_folder) !== process.pid) process.exit(0)
    endIfIdle(IDLE_MS_MAX)
  }

  function endIfIdle(idle_ms_max: number): void {
    const is_needed = streams.size > 0 || (runner !== null && isAlive({ ...runner, boot_id }, boot_id))
    if (is_needed) idle_since_ms = performance.now()
    else if (performance.now() - idle_since_ms >= idle_ms_max || idle_ms_max === 0) process.exit(0)
  }

  const former = readPid(lobbies_folder)
  if (!takePlace(lobbies_folder)) return
  // Two that read the same pipes would each have half of it.
  for (let waited_ms = 0; waited_ms < FORMER_WAIT_MS_MAX && isLogger(former); waited_ms += FORMER_POLL_MS) {
    await sleep(FORMER_POLL_MS)
  }
  for (const lobby_id of lobbiesWithPipes(lobbies_folder)) attach(lobby_id)
  listen(lobbies_folder, obey)
  setInterval(keepHouse, HOUSEKEEPING_MS)
}

/** Those that have pipes, and those that may have them where an older platform made them. */
function lobbiesWithPipes(lobbies_folder: string): Set<string> {
  const names = readdirSync(outputPipesFolder(lobbies_folder)).map((name) => name.slice(0, name.lastIndexOf('.')))
  return new Set([...names, ...readdirSync(unfinishedFolder(lobbies_folder))].filter(isLobbyId))
}

/** False when another logger reads the control pipe already. */
function takePlace(lobbies_folder: string): boolean {
  try {
    closeSync(openSync(controlPipe(lobbies_folder), constants.O_WRONLY | constants.O_NONBLOCK))
    return false
  } catch (error) {
    // No reader.
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

/** Whether a process of this number is a logger, and not one that got the number later. */
function isLogger(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('logger.ts')
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** The control pipe is held open for writing too: it has no end, whatever becomes of the runner. */
function listen(lobbies_folder: string, obey: (message: string) => void): void {
  const fd = openSync(controlPipe(lobbies_folder), constants.O_RDWR | constants.O_NONBLOCK)
  const socket = new Socket({ fd, readable: true, writable: false })
  let rest = ''
  socket.on('data', (chunk: Buffer) => {
    const messages = (rest + chunk.toString('latin1')).split('\n')
    rest = (messages.pop() ?? '').slice(-MESSAGE_BYTES_MAX)
    for (const message of messages) obey(message)
  })
}

/** Null when there is no pipe, or not one of ours. */
function openPipe(path: string): number | null {
  try {
    if (!statSync(path).isFIFO()) return null
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** Takes what is there without waiting. True at the end of the pipe. */
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

/** Appends to the newest file, and goes on with the next when it is full. A full disk costs lines, nothing else. */
function createKeeper(folder: string, stream: LogStream): (bytes: Buffer) => void {
  let number: number | null = null
  let is_refused = false
  return (bytes) => {
    if (bytes.length === 0) return
    try {
      number ??= newestFile(folder, stream)
      if (append(logFile(folder, stream, number), bytes) >= LOG_FILE_BYTES_MAX) {
        number++
        rmSync(logFile(folder, stream, number - LOG_FILES_MAX), { force: true })
      }
      is_refused = false
    } catch (error) {
      const why = error instanceof Error ? error.message : error
      if (!is_refused && !isGone(error)) say(`${stream} of ${folder}: ${why}`)
      is_refused = true
    }
  }
}

/** Answers how long the file is by then. */
function append(path: string, bytes: Buffer): number {
  const fd = openSync(path, 'a', 0o600)
  try {
    writeSync(fd, bytes)
    return fstatSync(fd).size
  } finally {
    closeSync(fd)
  }
}

/** The standard error goes into a file beside the control pipe. */
function say(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`)
}

if (import.meta.main) {
  const lobbies_folder = process.argv[2]
  if (lobbies_folder === undefined) throw new Error('The logger needs the folder of the lobbies.')
  await runLogger(lobbies_folder)
}
