// The game server on this machine: one process, restarted when its files change. It gets the arguments, the environment and
// the files of a lobby, by the code of the runner, with the development token in place of the token of a lobby.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { availableParallelism, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  type GameModeConfig,
  gameModesOf,
  inTerminal,
  type LobbyFile,
  type LobbyPort,
  lobbyProgram,
  type VersionConfig,
} from '@musterhost/contract'
import { gameModeId } from '@musterhost/contract/name-ids'
import type { LobbyFacts, ProgramAdditions } from '@musterhost/protocols'
import { EXIT, Failure } from '../failure.ts'
import type { PortNumbers } from './edge/edge.ts'
import { SERVER_HOST } from './edge/port.ts'
import type { Guard } from './guard.ts'
import { LOBBY_ID, type LobbyBeginning, REGION } from './lobby.ts'

/** The end of a server that was asked to end. */
const STOP_MS_MAX = 5_000
/** Mode of the files of a lobby. */
const FILE_MODE = 0o600
/** Programs of Windows do not start without these. */
const WINDOWS_NAMES = ['SystemRoot', 'SystemDrive', 'ComSpec', 'PATHEXT', 'TEMP', 'TMP', 'USERPROFILE', 'APPDATA']

/** `files`: written into `home` before each start. `lobby`: for the protocol of the server, if it speaks one. */
export type ServerPlan = {
  program: string
  args: readonly string[]
  folder: string
  env: Record<string, string>
  home: string
  files: readonly LobbyFile[]
  has_terminal: boolean
  lobby: Omit<LobbyFacts, 'start_ts'>
}

/** The first game mode, which the lobby of `muster dev` has, with all defaults applied. */
export function firstModeOf(version: VersionConfig): GameModeConfig {
  const [mode] = gameModesOf(version).values()
  if (mode !== undefined) return mode
  throw new Failure('muster.yaml has no game mode, so there is no server to run.', { exit_code: EXIT.usage })
}

/** `host`: of this machine, as players reach it. `ports`: where the server listens and players connect, by name. `secrets`: in place of those of the game. */
type LobbyPlace = {
  api_url: string
  token: string
  game_id: string
  namespace: { namespace_id: string; name_id: string; version_id: string }
  host: string
  ports: PortNumbers
  home: string
  secrets: Readonly<Record<string, string>>
}

export function planServer(
  mode: GameModeConfig,
  folder: string,
  place: LobbyPlace,
  env: Readonly<Record<string, string | undefined>>,
  beginning: LobbyBeginning,
): ServerPlan {
  const { home, namespace, secrets } = place
  const facts = {
    API_URL: place.api_url,
    TOKEN: place.token,
    LOBBY_ID,
    GAME_MODE_ID: gameModeId(place.game_id, mode.name),
    GAME_MODE_NAME: mode.name,
    NAMESPACE_ID: namespace.namespace_id,
    NAMESPACE_NAME: namespace.name_id,
    VERSION_ID: namespace.version_id,
    VERSION_NAME: 'dev',
    REGION_ID: REGION.id,
    REGION_NAME: REGION.name,
    MAX_PLAYERS_NORMAL: String(beginning.max_players ?? mode.max_players_normal),
    MAX_PLAYERS_DIRECT: String(beginning.max_players ?? mode.max_players_direct),
    MAX_PLAYERS_PARTY: String(mode.max_players_party),
    // The processors of this machine in thousandths of a core, and its memory in bytes.
    CPU: String(availableParallelism() * 1000),
    MEMORY: String(totalmem()),
    LOBBY_CONFIG: beginning.lobby_config,
    LOBBY_TAGS: Object.keys(beginning.tags).length > 0 ? JSON.stringify(beginning.tags) : null,
  }
  const image = null
  const ports = lobbyPorts(mode, place)
  const started = lobbyProgram(mode, facts, ports, { home, host: SERVER_HOST, image, secrets })
  const [program, ...args] = started.args
  if (program === undefined) {
    throw new Failure('matchmaker.docker.args of muster.yaml names no program.', { exit_code: EXIT.usage })
  }
  return {
    // As on the platform: `node` is that of the platform, other names are files of the build or programs of the system.
    program: program === 'node' ? process.execPath : program.includes('/') ? join(folder, program) : program,
    args,
    folder,
    env: { ...ofSystem(env), ...started.env, HOME: home, TMPDIR: temporaryFolderOf(home) },
    home,
    files: started.files,
    has_terminal: mode.terminal && makesTerminals(env),
    lobby: {
      ...{ lobby_id: LOBBY_ID, namespace_id: namespace.namespace_id, version_id: namespace.version_id },
      ...{ game_mode: mode.name, region_id: REGION.id, host: SERVER_HOST, home, tags: beginning.tags },
      max_players: beginning.max_players ?? mode.max_players_normal,
      config: beginning.lobby_config === null ? null : (JSON.parse(beginning.lobby_config) as unknown),
      ports: mode.ports.map(({ name, protocol }) => ({ name, protocol, ...ports[name]! })),
    },
  }
}

/** As the runner makes them: with the `script` of util-linux. Other systems have another program of this name. */
export function makesTerminals({ PATH = '' }: Readonly<Record<string, string | undefined>>): boolean {
  return process.platform === 'linux' && PATH.split(':').some((folder) => existsSync(join(folder, 'script')))
}

/** A server gets no variable of the developer's shell that its lobbies lack. */
function ofSystem(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const names = process.platform === 'win32' ? ['Path', 'PATH', ...WINDOWS_NAMES] : ['PATH']
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

function lobbyPorts(mode: GameModeConfig, { host, ports }: LobbyPlace): Record<string, LobbyPort> {
  const address = isIPv6(host) ? `[${host}]` : host
  const entries = mode.ports.map(({ name, protocol, port_range }): [string, LobbyPort] => {
    const { listening = null, public: number = null } = ports[name] ?? {}
    const url = `${plainProtocol(protocol)}://${address}${port_range === null ? `:${number}` : ''}`
    return [name, { listening, public: { hostname: host, port: number, url } }]
  })
  return Object.fromEntries(entries)
}

/** The server on this machine has no certificate. */
export function plainProtocol(protocol: string): 'http' | 'tcp' | 'udp' {
  if (protocol === 'tcp' || protocol === 'tcp_tls') return 'tcp'
  return protocol === 'udp' ? 'udp' : 'http'
}

function temporaryFolderOf(home: string): string {
  return join(home, 'tmp')
}

/** As for a new lobby: the folder has the files of the config, and nothing of the run before. */
function makeHome({ home }: ServerPlan, files: readonly LobbyFile[]): void {
  rmSync(home, { recursive: true, force: true })
  mkdirSync(temporaryFolderOf(home), { recursive: true })
  for (const { path, content } of files) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), content, { mode: FILE_MODE })
  }
}

/**
 * `starting`: called before each start. It returns what the server starts with beside its plan. `ended`: called when the server
 * ends before it is asked to.
 */
type Output = {
  line(text: string): void
  event(text: string): void
  starting(plan: ServerPlan): Promise<ProgramAdditions>
  ended(): void
}

/** Starts, restarts and stops the process. Calls wait for each other. */
export class GameServer {
  #plan: ServerPlan
  readonly #guard: Guard
  readonly #output: Output
  #child: ChildProcess | null = null
  #turn: Promise<void> = Promise.resolve()

  constructor(plan: ServerPlan, guard: Guard, output: Output) {
    this.#plan = plan
    this.#guard = guard
    this.#output = output
  }

  get is_running(): boolean {
    return this.#child !== null
  }

  /** `plan`: of a new lobby. Default: that of the one before. */
  restart(reason: string, plan: ServerPlan = this.#plan): Promise<void> {
    return this.#inTurn(async () => {
      await this.#end()
      this.#plan = plan
      await this.#start(reason).catch((error: Error) => {
        this.#output.event(`server could not be started: ${error.message}`)
      })
    })
  }

  stop(): Promise<void> {
    return this.#inTurn(() => this.#end())
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #start(reason: string): Promise<void> {
    const added = await this.#output.starting(this.#plan)
    const { program, args, folder, env, has_terminal } = this.#plan
    const [command = '', ...rest] = has_terminal ? inTerminal([program, ...args]) : [program, ...args]
    this.#output.event(`server starts (${reason})`)
    makeHome(this.#plan, [...this.#plan.files, ...added.files])
    const child = spawn(command, rest, {
      cwd: folder,
      env: { ...env, ...added.env },
      detached: HAS_GROUPS,
      // The input of a terminal does not end while the server runs.
      stdio: [has_terminal ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#guard.add(child, { is_group: true, signal: 'SIGTERM', wait_ms: STOP_MS_MAX })
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on('line', (line) => this.#output.line(line))
    }
    child.once('error', (error) => this.#output.event(`server could not be started: ${error.message}`))
    child.once('close', (code, signal) => {
      if (this.#child !== child) return
      this.#child = null
      this.#output.event(`server ended with ${signal ?? `exit code ${code}`}; it starts again when a file changes`)
      this.#output.ended()
    })
  }

  /** Ends the process and what it started. */
  async #end(): Promise<void> {
    const child = this.#child
    if (child === null || child.pid === undefined) return
    this.#child = null
    const closed = new Promise((resolve) => child.once('close', resolve))
    signalGroup(child, 'SIGTERM')
    const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_MS_MAX)
    await closed
    clearTimeout(timer)
  }
}

const HAS_GROUPS = process.platform !== 'win32'

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  if (!HAS_GROUPS) {
    child.kill(signal)
    return
  }
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // It has ended a moment ago.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
