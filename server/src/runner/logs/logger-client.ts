// The runner's side of the logger: starts one when there is none, names new lobbies to it, and opens the named pipes that
// lobbies write into.
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, closeSync, constants, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { LOG_STREAMS } from '../../lobby-logs/files.ts'
import { folderOfLobby, outputPipe, outputPipesFolder } from '../../lobby-logs/local.ts'
import { codeOf, readStat } from '../../node/procfs.ts'
import { platformFolder } from '../folders/names.ts'
import { controlPipe, loggerErrorFile } from './control.ts'
import { SparePipes } from './spare-pipes.ts'

const LOGGER = fileURLToPath(new URL('./logger.ts', import.meta.url))
/** The logger allocates few long-lived objects and lives as long as the platform, so a small young generation is enough. */
const LOGGER_FLAGS = ['--max-semi-space-size=1']
/** Messages that wait for a logger. Beyond it the oldest are dropped: a new logger finds all lobbies without them. */
const UNSENT_MAX = 1_000
/** How long `close` waits for the logger to end. */
const END_WAIT_MS_MAX = 3_000
const END_POLL_MS = 10

type LobbyPipes = {
  /** Where the lobby opens them. */
  paths: { stdout: string; stderr: string }
  /** Open for writing, so that the logger does not take them for finished. To be closed once the lobby has opened them. */
  stdout: number
  stderr: number
  /**
   * Keep unread output in the pipes until the logger has read it, even after the lobby has ended. To be closed when the
   * lobby has ended and its log is whole.
   */
  kept: number[]
}

export class LoggerClient {
  readonly #lobbies_folder: string
  readonly #pipes: SparePipes
  /** The control pipe, open for writing; null while no logger reads it. */
  #control: number | null = null
  #starting: ChildProcess | null = null
  /** Messages sent while a new logger starts. It finds the lobbies without them, only later. */
  readonly #unsent: string[] = []

  /** `lobbies_folder` exists. Throws when pipes cannot be made in it. */
  constructor(lobbies_folder: string) {
    this.#lobbies_folder = lobbies_folder
    this.#pipes = new SparePipes(join(platformFolder(lobbies_folder), 'spare-pipes'))
    mkdirSync(outputPipesFolder(lobbies_folder), { recursive: true, mode: 0o700 })
    if (!existsSync(controlPipe(lobbies_folder))) renameSync(this.#pipes.take(), controlPipe(lobbies_folder))
    this.#send('')
  }

  /** Makes two pipes, open for the lobby's stdout and stderr. They belong to `uid` if not null. */
  openPipes(lobby_id: string, uid: number | null): LobbyPipes {
    const folder = folderOfLobby(this.#lobbies_folder, lobby_id)
    const opened: number[] = []
    try {
      for (const stream of LOG_STREAMS) {
        const pipe = outputPipe(folder, stream)
        renameSync(this.#pipes.take(), pipe)
        opened.push(openSync(pipe, constants.O_RDWR), openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK))
        // So that the lobby can open /dev/stdout and /dev/stderr by name.
        if (uid !== null) chownSync(pipe, uid, uid)
      }
    } catch (error) {
      for (const fd of opened) closeSync(fd)
      throw error
    }
    this.#pipes.refill()
    const [stdout, kept_stdout, stderr, kept_stderr] = opened as [number, number, number, number]
    const paths = { stdout: outputPipe(folder, 'stdout'), stderr: outputPipe(folder, 'stderr') }
    return { paths, stdout, stderr, kept: [kept_stdout, kept_stderr] }
  }

  /** Makes a pipe at the path. It belongs to `uid` if not null. */
  makePipe(path: string, uid: number | null): void {
    renameSync(this.#pipes.take(), path)
    if (uid !== null) chownSync(path, uid, uid)
  }

  /** The lobby has opened its pipes: the logger is to read them. */
  attach(lobby_id: string): void {
    this.#send(`attach ${lobby_id}\n`)
  }

  /** Starts a logger if the current one has died. Called every few seconds. */
  ensure(): void {
    this.#send('\n')
  }

  async close({ logger }: { logger: 'end' | 'keep' }): Promise<void> {
    if (logger === 'end') {
      for (let waited_ms = 0; waited_ms < END_WAIT_MS_MAX; waited_ms += END_POLL_MS) {
        if (!this.#connect() && this.#starting === null) break
        if (this.#control !== null && !writeMessage(this.#control, 'bye\n')) break
        await sleep(END_POLL_MS)
      }
    }
    this.#disconnect()
    this.#pipes.close()
  }

  /** False when no logger reads the control pipe. */
  #connect(): boolean {
    if (this.#control !== null) return true
    try {
      this.#control = openSync(controlPipe(this.#lobbies_folder), constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      if (codeOf(error) === 'ENXIO') return false
      throw error
    }
    this.#unsent.unshift(`runner ${process.pid} ${readStat(process.pid)?.start_time ?? ''}\n`)
    return true
  }

  #send(message: string): void {
    if (message !== '') this.#unsent.push(message)
    if (this.#unsent.length > UNSENT_MAX) this.#unsent.shift()
    if (!this.#connect()) {
      this.#startLogger()
      return
    }
    try {
      while (this.#control !== null && this.#unsent.length > 0) {
        writeSync(this.#control, this.#unsent[0] ?? '')
        this.#unsent.shift()
      }
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return
      if (codeOf(error) !== 'EPIPE') throw error
      this.#disconnect()
      this.#startLogger()
    }
  }

  #disconnect(): void {
    if (this.#control !== null) closeSync(this.#control)
    this.#control = null
    this.#unsent.length = 0
  }

  /** The death of a logger shows as a control pipe without a reader. While one is starting no second one is started. */
  #startLogger(): void {
    if (this.#starting !== null) return
    const compiled = getCompileCacheDir()
    const error_file = openSync(loggerErrorFile(this.#lobbies_folder), 'w', 0o600)
    this.#starting = spawn(process.execPath, [...LOGGER_FLAGS, LOGGER, this.#lobbies_folder], {
      detached: true,
      stdio: ['ignore', 'ignore', error_file],
      // With compiled code at hand it does not load the TypeScript compiler, which takes 17 MB.
      env: { ...(compiled !== undefined && { NODE_COMPILE_CACHE: dirname(compiled) }) },
      cwd: '/',
    })
    closeSync(error_file)
    this.#starting.unref()
    const onEnd = (): void => {
      this.#starting = null
    }
    this.#starting.on('error', onEnd)
    this.#starting.on('exit', onEnd)
  }
}

/** False when no logger reads the pipe any more. A full pipe counts as written: the caller repeats the message. */
function writeMessage(control: number, message: string): boolean {
  try {
    writeSync(control, message)
    return true
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return true
    if (codeOf(error) === 'EPIPE') return false
    throw error
  }
}
