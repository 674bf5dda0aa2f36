// The platform that `muster up` and `muster dev` use: the one that is chosen, if it runs. Otherwise one on this machine, which keeps its data in
// `.muster/platform` of the project and ends with the command.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createGame, createGroup, getBootstrap, getGames } from '@musterhost/contract'
import { STATE_FOLDER } from '../deploy/state.ts'
import { Failure } from '../failure.ts'
import { isLocal } from '../local-url.ts'
import type { GlobalOptions } from '../options.ts'
import { requirePlatform } from '../platform-node.ts'
import type { Project } from '../project/project.ts'
import { createCommandClient, openSession, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import type { Guard } from './guard.ts'

const PROGRAM = fileURLToPath(new URL('../main.ts', import.meta.url))
/** A start of the platform: the first one makes its database. */
const START_MS_MAX = 300_000
/** Lines of the platform that are shown when it does not start. */
const LAST_LINES_MAX = 20
/** The end of a platform that was asked to end. */
const STOP_MS_MAX = 30_000
const LOOPBACK = '127.0.0.1'
/** Ports are below it. */
const PORTS_END = 65_536
const GAME_NAME_DEFAULT = 'game'
/** Characters of the name of a game. */
const NAME_LENGTH_MAX = 16

/** `is_own`: this command has started it, and ends it. */
export type LocalPlatform = { session: Session; is_own: boolean; stop(): Promise<void> }

export async function findOrStartPlatform(
  terminal: Terminal,
  options: GlobalOptions,
  project: Project,
  guard: Guard,
): Promise<LocalPlatform> {
  const chosen = await findPlatform(terminal, options)
  if (chosen !== null) return { session: chosen, is_own: false, stop: async () => {} }
  return startPlatform(terminal, options, project, guard)
}

/** Null: none is chosen, or the chosen one is on this machine and does not run. */
async function findPlatform(terminal: Terminal, options: GlobalOptions): Promise<Session | null> {
  let session: Session
  try {
    session = await openSession(terminal, options)
  } catch (error) {
    const is_named = options.url !== undefined || options.context !== undefined || Boolean(terminal.env.MUSTER_URL)
    if (error instanceof Failure && !is_named) return null
    throw error
  }
  try {
    await session.client.call(getBootstrap, {})
    return session
  } catch (error) {
    if (error instanceof Failure && isLocal(session.url)) return null
    throw error
  }
}

async function startPlatform(
  terminal: Terminal,
  options: GlobalOptions,
  project: Project,
  guard: Guard,
): Promise<LocalPlatform> {
  requirePlatform()
  const data_dir = join(project.folder, STATE_FOLDER, 'platform')
  await mkdir(data_dir, { recursive: true })
  const settings = await portSettings(terminal, join(project.folder, STATE_FOLDER, 'platform-ports.json'))
  terminal.note(`No platform runs: starting one, with its data in ${data_dir}`)
  const child = spawn(process.execPath, [PROGRAM, 'start'], {
    // With npm_lifecycle_event the platform ends when this process is killed.
    env: { npm_lifecycle_event: 'muster', ...terminal.env, ...settings, MUSTER_DATA: data_dir, NO_COLOR: '1' },
    // A group of its own: Ctrl-C reaches this command, which then ends the parts in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // The same request as in stopPlatform.
  guard.add(child, { is_group: false, signal: 'SIGINT', wait_ms: STOP_MS_MAX })
  const stop = (): Promise<void> => stopPlatform(child)
  try {
    await whenReady(terminal, child)
    const token = readFileSync(join(data_dir, 'admin-token'), 'utf8').trim()
    const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
    const game = await requireGame(terminal, { url, token }, options.game ?? project.game)
    const env = { ...terminal.env, MUSTER_URL: url, MUSTER_TOKEN: token }
    const surroundings = { env, cwd: terminal.cwd, signal: terminal.signal }
    const { context: _context, url: _url, ...rest } = options
    return { session: await openSession(surroundings, { ...rest, game, namespace: 'prod' }), is_own: true, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * Ports that no other program listens at, so that the platform does not disturb another one of this machine. A later start
 * takes the same ports, where they are still free: addresses and contexts stay valid.
 */
async function portSettings({ env }: Terminal, file: string): Promise<Record<string, string>> {
  const names = [
    'MUSTER_EDGE_HTTP_PORT',
    'MUSTER_EDGE_HTTPS_PORT',
    'MUSTER_API_PORT',
    'MUSTER_MATCHMAKER_PORT',
    'MUSTER_LOBBY_API_PORT',
  ]
  const former = readPorts(file)
  const free = await freePorts(names.length)
  const settings: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const port = former[name]
    settings[name] = env[name] ?? String(port !== undefined && (await isFree(port)) ? port : free[index])
  }
  await writeFile(file, `${JSON.stringify(settings)}\n`)
  return { ...settings, MUSTER_METRICS_PORT: '0' }
}

/** Empty when there is no such file, or it is damaged. */
function readPorts(file: string): Record<string, number> {
  try {
    const ports = Object.entries(JSON.parse(readFileSync(file, 'utf8'))).map(([name, port]) => [name, Number(port)])
    return Object.fromEntries(ports.filter(([, port]) => Number.isInteger(port) && Number(port) < PORTS_END))
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const is_free = new Promise<boolean>((resolve) => {
    server.once('listening', () => resolve(true)).once('error', () => resolve(false))
  })
  server.listen(port, LOOPBACK)
  if (!(await is_free)) return false
  await new Promise((resolve) => server.close(resolve))
  return true
}

/** They are taken all at once, so that none is found twice. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, LOOPBACK))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** Resolves at its line that begins with `ready`. Throws a Failure with its last lines when it does not start. */
async function whenReady(terminal: Terminal, child: ChildProcess): Promise<void> {
  const lines: string[] = []
  let open = ''
  const ready = new Promise<string | null>((resolve) => {
    const read = (chunk: string): void => {
      const [...whole] = (open + chunk).split('\n')
      open = whole.pop() ?? ''
      for (const line of whole) {
        lines.push(line)
        if (lines.length > LAST_LINES_MAX) lines.shift()
        if (line.startsWith('ready')) resolve(null)
      }
    }
    child.stdout?.setEncoding('utf8').on('data', read)
    child.stderr?.setEncoding('utf8').on('data', read)
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`))
    setTimeout(() => resolve(`it was not ready within ${START_MS_MAX / 1000} s`), START_MS_MAX).unref()
    terminal.signal.addEventListener('abort', () => resolve('it was interrupted'), { once: true })
  })
  const failure = await ready
  terminal.signal.throwIfAborted()
  if (failure === null) return
  throw new Failure(`The platform did not start: ${failure}.`, {
    details: lines.filter((line) => line.trim() !== '').map((message) => ({ path: 'muster start', message })),
    remedy: 'Run it by hand to see more: muster start. To use another one: --url, or muster login',
  })
}

/** SIGINT ends the lobbies too. A platform that does not end is killed by its own watch of this process. */
async function stopPlatform(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGINT')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
  await closed
  clearTimeout(timer)
}

/** The game of the project; created when the platform is new. Returns its id. */
async function requireGame(
  terminal: Terminal,
  { url, token }: { url: string; token: string },
  wanted: string | null,
): Promise<string> {
  const client = createCommandClient(url, token, terminal.signal)
  const name_id = (wanted ?? GAME_NAME_DEFAULT).slice(0, NAME_LENGTH_MAX)
  const { games, groups } = await client.call(getGames, {})
  const known = games.find((game) => game.name_id === name_id)
  if (known !== undefined) return known.game_id
  const group_id =
    groups[0]?.group_id ?? (await client.call(createGroup, { body: { display_name: 'Developers' } })).group_id
  const body = { name_id, display_name: name_id, developer_group_id: group_id }
  return (await client.call(createGame, { body })).game_id
}
