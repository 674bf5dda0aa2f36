// What the program of a lobby starts with: its arguments, its environment and its files. The runner starts lobbies with it,
// and `muster dev` the server of a developer. The config cannot replace variables of the platform, except PORT and HOST.
import { isPlatformVariable, isReservedVariable } from './env-names.ts'
import type { GameModeConfig } from './game-modes.ts'
import { TERMINAL_TYPE } from './lobby-terminal.ts'
import {
  fillPlaceholders,
  HOME_PLACEHOLDER,
  LOBBY_PLACEHOLDERS,
  placeholderNames,
  variableOfPort,
} from './placeholders.ts'

/** `path`: in the lobby's writable folder. */
export type LobbyFile = { path: string; content: string }
export type LobbyProgram = { args: string[]; env: Record<string, string>; files: LobbyFile[] }

/** The facts of a lobby, each by the name of its placeholder. Null: a member that most lobbies do not have. */
export type LobbyFacts = Readonly<Record<(typeof LOBBY_PLACEHOLDERS)[number], string>> &
  Readonly<{ API_URL: string; TOKEN: string; LOBBY_CONFIG: string | null; LOBBY_TAGS: string | null }>

/** `listening`: the number at which the server listens; null: a range. The rest is how players reach it; `port` null: a range. */
export type LobbyPort = {
  listening: number | null
  public: { hostname: string; port: number | null; url: string }
}

/** The command and the variables of an image. */
type ImageProgram = Readonly<{
  entrypoint: readonly string[]
  cmd: readonly string[]
  env: Readonly<Record<string, string>>
}>

/**
 * `ports`: by name. `home`: the writable folder, as the program sees it. `host`: where it listens. `image`: null for an archive.
 * `secrets`: of the game, by name; they replace variables of the config, and have no placeholders. As in container engines, `args` of the config replace the command of an image and stay behind its entrypoint; variables of
 * the config replace those of the image.
 */
export function lobbyProgram(
  mode: GameModeConfig,
  facts: LobbyFacts,
  ports: Readonly<Record<string, LobbyPort>>,
  {
    home,
    host,
    image,
    secrets,
  }: { home: string; host: string; image: ImageProgram | null; secrets: Readonly<Record<string, string>> },
): LobbyProgram {
  const own = { ...platformVariables(facts), ...portVariables(mode, ports, host) }
  const values = placeholderValues(own, mode, home)
  const env: Record<string, string> = { ...(mode.terminal && { TERM: TERMINAL_TYPE }), ...image?.env }
  for (const name of ['PORT', 'HOST'] as const) if (own[name] !== undefined) env[name] = own[name]
  for (const [name, value] of Object.entries(mode.env)) {
    if (!isReservedVariable(name)) env[name] = fillPlaceholders(value, values)
  }
  for (const [name, value] of Object.entries(secrets)) if (!isPlatformVariable(name)) env[name] = value
  for (const [name, value] of Object.entries(own)) if (isReservedVariable(name)) env[name] = value
  const args = mode.args.map((text) => fillPlaceholders(text, values))
  const entrypoint = mode.image.entrypoint?.map((text) => fillPlaceholders(text, values))
  return {
    args: image === null ? args : imageArgs(image, entrypoint, args),
    env,
    files: Object.entries(mode.files).map(([path, text]) => ({ path, content: fillPlaceholders(text, values) })),
  }
}

/** An entrypoint of the config replaces the command of the image too. */
function imageArgs(image: ImageProgram, entrypoint: readonly string[] | undefined, args: readonly string[]): string[] {
  if (entrypoint !== undefined) return [...entrypoint, ...args]
  return [...image.entrypoint, ...(args.length > 0 ? args : image.cmd)]
}

function platformVariables(facts: LobbyFacts): Record<string, string> {
  const given = Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== null)
  return Object.fromEntries(given.map(([name, value]) => [`PLATFORM_${name}`, value]))
}

/** Where the server listens, and where players reach it. PORT and HOST are those of the first port. */
function portVariables(
  mode: GameModeConfig,
  ports: Readonly<Record<string, LobbyPort>>,
  host: string,
): Record<string, string> {
  const own: Record<string, string> = {}
  for (const { name, port_range } of mode.ports) {
    const variable = variableOfPort(name)
    const { listening = null, public: reached } = ports[name] ?? {}
    if (listening !== null) {
      own.PORT ??= String(listening)
      own.HOST ??= host
      own[`PORT_${variable}`] = String(listening)
    }
    if (port_range !== null) {
      own[`PORT_RANGE_MIN_${variable}`] = String(port_range.min)
      own[`PORT_RANGE_MAX_${variable}`] = String(port_range.max)
    }
    if (reached === undefined) continue
    own[`PUBLIC_HOST_${variable}`] = reached.hostname
    if (reached.port !== null) own[`PUBLIC_PORT_${variable}`] = String(reached.port)
    own[`PUBLIC_URL_${variable}`] = reached.url
  }
  return own
}

/** Without the token, which belongs in no command line, and without what players send. */
function placeholderValues(
  own: Readonly<Record<string, string>>,
  { ports }: GameModeConfig,
  home: string,
): Map<string, string> {
  const values = new Map([[HOME_PLACEHOLDER, home]])
  for (const name of LOBBY_PLACEHOLDERS) values.set(name, own[`PLATFORM_${name}`]!)
  for (const name of placeholderNames(ports)) if (own[name] !== undefined) values.set(name, own[name])
  return values
}
