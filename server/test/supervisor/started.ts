// `muster start` as a person starts it: a real process that leads a process group, as under a terminal, on free ports and a
// new data folder. Processes that still name the folder at the end of the test are killed.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { isLobbyId } from '../../src/lobby-logs/local.ts'
import { clearDataFolder } from '../leftovers/clear.ts'
import { MUSTER } from '../run/built-programs.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

export type Started = {
  pid: number
  /** Everything it printed. */
  output(): string
  /** Resolves with the line that begins with `ready`; rejects with the output when it ends before. */
  ready: Promise<string>
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** To the whole process group, as the terminal does with Ctrl-C. */
  signalGroup(signal: NodeJS.Signals): void
  kill(signal: NodeJS.Signals): void
}

export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-start-'))
  t.after(async () => {
    await endProcessesOf(folder)
    await clearDataFolder(folder)
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** Kills every process that names the folder, and waits until it has ended. */
export async function endProcessesOf(folder: string): Promise<void> {
  for (const { pid } of processesOf(folder)) killIfThere(pid, 'SIGKILL')
  await until('the processes of a folder to end', () => processesOf(folder).length === 0)
}

/** Settings of a platform that does not disturb others on this machine. TEST_EDGE_PROCESSES: how many edges it has. */
export async function freeSettings(folder: string) {
  const { TEST_EDGE_PROCESSES } = process.env
  const [api, matchmaker, lobby_api, http, https] = await freePorts(5)
  return {
    MUSTER_DATA: folder,
    MUSTER_API_PORT: String(api),
    MUSTER_MATCHMAKER_PORT: String(matchmaker),
    MUSTER_LOBBY_API_PORT: String(lobby_api),
    MUSTER_EDGE_HTTP_PORT: String(http),
    MUSTER_EDGE_HTTPS_PORT: String(https),
    MUSTER_METRICS_PORT: '0',
    ...(TEST_EDGE_PROCESSES !== undefined && { MUSTER_EDGE_PROCESSES: TEST_EDGE_PROCESSES }),
  }
}

export function startMuster(settings: Record<string, string>, words: readonly string[] = ['start']): Started {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const [program, ...args] = [...withThisProcess(), process.execPath, MUSTER, ...words]
  const child: ChildProcess = spawn(program!, args, {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...settings },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ready = Promise.withResolvers<string>()
  const ended = Promise.withResolvers<{ code: number | null; signal: NodeJS.Signals | null }>()
  ready.promise.catch(() => {})
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      const line = /^ready.*$/m.exec(output)
      if (line) ready.resolve(line[0])
    })
  }
  child.once('close', (code, signal) => {
    ready.reject(new Error(`muster ${words[0]} ended with ${signal ?? code}:\n${output}`))
    ended.resolve({ code, signal })
  })
  const pid = child.pid
  if (pid === undefined) throw new Error('muster start could not be started')
  return {
    pid,
    output: () => output,
    ready: ready.promise,
    ended: ended.promise,
    signalGroup: (signal) => void process.kill(-pid, signal),
    kill: (signal) => void child.kill(signal),
  }
}

/** An interrupted test run skips its hooks. The kernel then sends SIGINT to its child processes, as Ctrl-C would. */
function withThisProcess(): string[] {
  return spawnSync('setpriv', ['--version']).status === 0 ? ['setpriv', '--pdeathsig', 'INT'] : []
}

/** Every process whose command line or environment names the folder, or a lobby that was started from it. */
export function processesOf(folder: string): { pid: number; command: string }[] {
  const names = [folder, ...lobbiesOf(folder)]
  return readdirSync('/proc').flatMap((entry) => {
    const pid = Number(entry)
    if (!Number.isInteger(pid) || pid === process.pid) return []
    const command = readProc(pid, 'cmdline')
    const text = `${command} ${readProc(pid, 'environ')}`
    return names.some((name) => text.includes(name)) ? [{ pid, command }] : []
  })
}

/** The processes of a lobby under bubblewrap name its id, and not the folder. */
function lobbiesOf(folder: string): string[] {
  const lobbies = join(folder, 'lobbies')
  return existsSync(lobbies) ? readdirSync(lobbies).filter(isLobbyId) : []
}

/** The pid of a role's process; undefined when it has none. */
export function roleOf(folder: string, role: string): number | undefined {
  return processesOf(folder).find(({ command }) => /(main\.ts|role\.js) (\w+)$/.exec(command)?.[2] === role)?.pid
}

export function isThere(pid: number): boolean {
  const stat = readProc(pid, 'stat')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

/** The status of the response, or null when no process listens. */
export async function statusOf(url: string): Promise<number | null> {
  try {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.status
  } catch {
    return null
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    // It has ended, or belongs to another user.
    return ''
  }
}

/** Does nothing where the process has ended. */
export function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
