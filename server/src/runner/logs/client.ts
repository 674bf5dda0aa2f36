// The runner's side of the logger: starts it when there is none, tells it of new lobbies, and makes the named pipes that
// lobbies write into. Node cannot make a named pipe, mkfifo(1) can, at the price of a process; so some are kept ready
// and a start only renames two.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { LOG_STREAMS } from '../../lobby-logs/files.ts'
import { folderOfLobby, outputPipe, outputPipesFolder } from '../../lobby-logs/local.ts'
import { codeOf, readStat } from '../../procfs.ts'
import { controlPipe, loggerErrorFile, platformFolder } from './control.ts'

const LOGGER = fileURLToPath(new URL('./logger.ts', import.meta.url))
/** It keeps no objects for long, and lives as long as the platform. */
const LOGGER_FLAGS = ['--max-semi-space-size=1']
const SPARE_PIPES_MAX = 32
const SPARE_PIPES_MIN = 16
/** Beyond it the oldest are forgotten: a new logger finds all lobbies by itself. */
const UNSENT_MAX = 1_000
const END_WAIT_MS_MAX = 3_000
const END_POLL_MS = 10

type LobbyPipes = {
  /** Where they are, for the lobby. */
  paths: { stdout: string; stderr: string }
  /** Open for writing, so that nobody takes them for finished. To be closed once the lobby has opened them. */
  stdout: number
  stderr: number
  /**
   * Keep what is in the pipes until the logger has read it, even if the lobby is gone by then. To be closed when the
   * lobby has ended and its log is whole.
   */
  kept: number[]
}

export type LoggerClient = {
  /** Makes two pipes, open for the lobby's stdout and stderr. They belong to `uid` if not null. */
  openPipes(lobby_id: string, uid: number | null): LobbyPipes
  /** The lobby has its pipes: read them. */
  attach(lobby_id: string): void
  /** Starts a logger if the one there was has died. Called every second or so. */
  ensure(): void
  close(how: { logger: 'end' | 'keep' }): Promise<void>
}

/** `lobbies_folder` exists. Throws when pipes cannot be made in it. */
export function openLoggerClient(lobbies_folder: string): LoggerClient {
  const pipes_folder = join(platformFolder(lobbies_folder), 'spare-pipes')
  const spare: string[] = []
  let made = 0
  let filling: ChildProcess | null = null
  let control: number | null = null
  let starting: ChildProcess | null = null
  /** Messages of the time in which a new logger starts. It finds the lobbies by itself; they only hurry it. */
  const unsent: string[] = []

  function newNames(): string[] {
    return Array.from({ length: SPARE_PIPES_MAX - spare.length }, () => join(pipes_folder, String(made++)))
  }

  function fill(): void {
    if (filling !== null || spare.length >= SPARE_PIPES_MIN) return
    const names = newNames()
    filling = spawn('mkfifo', ['-m', '600', ...names], { stdio: 'ignore' })
    filling.on('error', () => {
      filling = null
    })
    filling.on('exit', (code) => {
      filling = null
      if (code === 0) spare.push(...names)
    })
  }

  function takePipe(): string {
    const ready = spare.pop()
    if (ready !== undefined) return ready
    const name = join(pipes_folder, String(made++))
    execFileSync('mkfifo', ['-m', '600', name])
    return name
  }

  /** False when nobody reads. */
  function connect(): boolean {
    if (control !== null) return true
    try {
      control = openSync(controlPipe(lobbies_folder), constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      if (codeOf(error) === 'ENXIO') return false
      throw error
    }
    unsent.unshift(`runner ${process.pid} ${readStat(process.pid)?.start_time ?? ''}\n`)
    return true
  }

  function send(message: string): void {
    if (message !== '') unsent.push(message)
    if (unsent.length > UNSENT_MAX) unsent.shift()
    if (!connect()) {
      startLogger()
      return
    }
    try {
      while (control !== null && unsent.length > 0) {
        writeSync(control, unsent[0] ?? '')
        unsent.shift()
      }
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return
      if (codeOf(error) !== 'EPIPE') throw error
      disconnect()
      startLogger()
    }
  }

  function disconnect(): void {
    if (control !== null) closeSync(control)
    control = null
    unsent.length = 0
  }

  function startLogger(): void {
    if (starting !== null) return
    const compiled = getCompileCacheDir()
    const error_file = openSync(loggerErrorFile(lobbies_folder), 'w', 0o600)
    starting = spawn(process.execPath, [...LOGGER_FLAGS, LOGGER, lobbies_folder], {
      detached: true,
      stdio: ['ignore', 'ignore', error_file],
      // With what is compiled already it does not load the TypeScript compiler, which takes 17 MB.
      env: { ...(compiled !== undefined && { NODE_COMPILE_CACHE: dirname(compiled) }) },
      cwd: '/',
    })
    closeSync(error_file)
    starting.unref()
    // Its death is noticed when the control pipe has no reader; a second one is not started while this one may be starting.
    const over = (): void => {
      starting = null
    }
    starting.on('error', over)
    starting.on('exit', over)
  }

  mkdirSync(pipes_folder, { recursive: true, mode: 0o700 })
  mkdirSync(outputPipesFolder(lobbies_folder), { recursive: true, mode: 0o700 })
  for (const name of readdirSync(pipes_folder)) rmSync(join(pipes_folder, name))
  if (!existsSync(controlPipe(lobbies_folder))) execFileSync('mkfifo', ['-m', '600', controlPipe(lobbies_folder)])
  const first = newNames()
  execFileSync('mkfifo', ['-m', '600', ...first])
  spare.push(...first)
  send('')

  return {
    openPipes(lobby_id, uid) {
      const folder = folderOfLobby(lobbies_folder, lobby_id)
      const opened: number[] = []
      try {
        for (const stream of LOG_STREAMS) {
          const pipe = outputPipe(folder, stream)
          renameSync(takePipe(), pipe)
          opened.push(openSync(pipe, constants.O_RDWR), openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK))
          // So that the lobby can open /dev/stdout and /dev/stderr by name.
          if (uid !== null) chownSync(pipe, uid, uid)
        }
      } catch (error) {
        for (const fd of opened) closeSync(fd)
        throw error
      }
      fill()
      const [stdout, kept_stdout, stderr, kept_stderr] = opened as [number, number, number, number]
      const paths = { stdout: outputPipe(folder, 'stdout'), stderr: outputPipe(folder, 'stderr') }
      return { paths, stdout, stderr, kept: [kept_stdout, kept_stderr] }
    },

    attach: (lobby_id) => send(`attach ${lobby_id}\n`),
    ensure: () => send('\n'),

    async close({ logger }) {
      if (logger === 'end') {
        for (let waited_ms = 0; waited_ms < END_WAIT_MS_MAX; waited_ms += END_POLL_MS) {
          if (!connect() && starting === null) break
          if (control !== null && !tell(control, 'bye\n')) break
          await sleep(END_POLL_MS)
        }
      }
      disconnect()
      filling?.kill()
    },
  }
}

/** False when nobody reads any more. */
function tell(control: number, message: string): boolean {
  try {
    writeSync(control, message)
    return true
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return true
    if (codeOf(error) === 'EPIPE') return false
    throw error
  }
}
