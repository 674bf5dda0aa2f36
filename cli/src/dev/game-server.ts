// The game server on this machine: one process, restarted when its files change. It gets the environment of a lobby, with the
// development token in place of the token of a lobby.
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type DockerBlock, dockerOfMode, type VersionConfig } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import { withoutToken } from '../terminal.ts'
import type { Guard } from './guard.ts'

/** The end of a server that was asked to end. */
const STOP_MS_MAX = 5_000
const LOBBY_ID = '00000000-0000-0000-0000-000000000000'
const REGION_ID = 'dev-lcl'

export type ServerPlan = {
  program: string
  args: readonly string[]
  folder: string
  env: Record<string, string>
}

/** The docker block of the first game mode, which lobbies of `muster dev` run. */
export function dockerOf({ matchmaker }: VersionConfig): {
  game_mode: string
  docker: DockerBlock
  max_players: number
} {
  const [first] = Object.entries(matchmaker?.game_modes ?? {})
  if (matchmaker === undefined || first === undefined) {
    throw new Failure('muster.yaml has no game mode, so there is no server to run.', { exit_code: EXIT.usage })
  }
  const [game_mode, mode] = first
  const docker = dockerOfMode(matchmaker.docker, mode.docker) ?? {}
  return { game_mode, docker, max_players: mode.max_players ?? matchmaker.max_players ?? PLAYERS_DEFAULT }
}

const PLAYERS_DEFAULT = 32

export type LobbyPlace = {
  api_url: string
  token: string
  namespace: { namespace_id: string; name_id: string }
  ports: Readonly<Record<string, number>>
}

export function planServer(
  version: VersionConfig,
  folder: string,
  place: LobbyPlace,
  env: Readonly<Record<string, string | undefined>>,
): ServerPlan {
  const { game_mode, docker, max_players } = dockerOf(version)
  const [program, ...args] = docker.args ?? []
  if (program === undefined) {
    throw new Failure('matchmaker.docker.args of muster.yaml names no program.', { exit_code: EXIT.usage })
  }
  return {
    // As on the platform: `node` is that of the platform, other names are files of the build or programs of the system.
    program: program === 'node' ? process.execPath : program.includes('/') ? join(folder, program) : program,
    args,
    folder,
    env: {
      ...Object.fromEntries(
        Object.entries(withoutToken(env)).filter((entry): entry is [string, string] => entry[1] !== undefined),
      ),
      ...docker.env,
      PLATFORM_API_URL: place.api_url,
      PLATFORM_TOKEN: place.token,
      PLATFORM_LOBBY_ID: LOBBY_ID,
      PLATFORM_GAME_MODE_NAME: game_mode,
      PLATFORM_NAMESPACE_ID: place.namespace.namespace_id,
      PLATFORM_NAMESPACE_NAME: place.namespace.name_id,
      PLATFORM_REGION_ID: REGION_ID,
      PLATFORM_REGION_NAME: 'Local',
      PLATFORM_MAX_PLAYERS_NORMAL: String(max_players),
      PLATFORM_MAX_PLAYERS_DIRECT: String(max_players),
      PLATFORM_MAX_PLAYERS_PARTY: String(max_players),
      ...Object.fromEntries(Object.entries(place.ports).map(([name, port]) => [portVariable(name), String(port)])),
    },
  }
}

function portVariable(name: string): string {
  return `PORT_${name.toUpperCase().replaceAll('-', '_')}`
}

type Output = { line(text: string): void; event(text: string): void }

/** Starts, restarts and stops the process. Calls wait for each other. */
export class GameServer {
  readonly #plan: ServerPlan
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

  restart(reason: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#end()
      this.#start(reason)
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

  #start(reason: string): void {
    const { program, args, folder, env } = this.#plan
    this.#output.event(`server starts (${reason})`)
    const child = spawn(program, [...args], {
      cwd: folder,
      env,
      detached: HAS_GROUPS,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#guard.add(child, { is_group: true, signal: 'SIGTERM', wait_ms: STOP_MS_MAX })
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.#output.line(line))
    }
    child.once('error', (error) => this.#output.event(`server could not be started: ${error.message}`))
    child.once('close', (code, signal) => {
      if (this.#child !== child) return
      this.#child = null
      this.#output.event(`server ended with ${signal ?? `exit code ${code}`}; it starts again when a file changes`)
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
