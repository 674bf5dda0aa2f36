// The environment of a lobby: its ids, its place, its token, its ports, and the variables of the version config. The
// driver adds only PATH, HOME and TMPDIR. The config cannot replace variables of the platform, except PORT and HOST.
// The same values fill the placeholders of the version config.
import {
  fillPlaceholders,
  type GameModeConfig,
  HOME_PLACEHOLDER,
  LOBBY_PLACEHOLDERS,
  placeholderNames,
  variableOfPort,
} from '@musterhost/contract'
import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import { gameModeId } from '../ids.ts'
import { lobbyAddress, ownPublicEdge } from '../lobby-addresses.ts'
import type { ImageStart } from '../objects/container-image/config.ts'
import type { ScratchFile } from './drivers/driver.ts'
import type { RunNetwork } from './network/lobby-networks.ts'
import { MACHINE_HOST } from './ports.ts'
import type { WantedLobby } from './rows.ts'

/** Names that `env` of the config may not set. Variables of a loader or an interpreter are allowed. */
const OWN_NAMES = /^(PLATFORM_|PORT_|PUBLIC_(HOST|PORT|URL)_)|^(PATH|HOME|TMPDIR)$/

/** What a lobby's program starts with. */
export type ProgramStart = { args: string[]; env: Record<string, string>; files: ScratchFile[] }

/**
 * `token`: of the lobby. `home`: the writable folder, as the program sees it. `host`: where it listens. `image`: null for an archive. As in container engines, `args` of the
 * config replace the command of an image and stay behind its entrypoint; variables of the config replace those of the image.
 */
export function programStart(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  ports: Readonly<Record<string, RunPort>>,
  network: Pick<RunNetwork, 'services'> | null,
  { token, home, image, host = MACHINE_HOST }: { token: string; home: string; image: ImageStart | null; host?: string },
): ProgramStart {
  const own = {
    ...platformVariables(ctx, lobby, mode, { token, network }),
    ...portVariables(ctx, lobby, mode, { ports, host }),
  }
  const values = placeholderValues(own, mode, home)
  const env: Record<string, string> = { ...image?.env }
  for (const name of ['PORT', 'HOST'] as const) if (own[name] !== undefined) env[name] = own[name]
  for (const [name, value] of Object.entries(mode.env)) {
    if (!OWN_NAMES.test(name)) env[name] = fillPlaceholders(value, values)
  }
  for (const [name, value] of Object.entries(own)) if (OWN_NAMES.test(name)) env[name] = value
  const args = mode.args.map((text) => fillPlaceholders(text, values))
  return {
    args:
      image === null
        ? args
        : imageArgs(
            image,
            mode.image.entrypoint?.map((text) => fillPlaceholders(text, values)),
            args,
          ),
    env,
    files: Object.entries(mode.files).map(([path, text]) => ({ path, content: fillPlaceholders(text, values) })),
  }
}

/** An entrypoint of the config replaces the command of the image too. */
function imageArgs(image: ImageStart, entrypoint: readonly string[] | undefined, args: readonly string[]): string[] {
  if (entrypoint !== undefined) return [...entrypoint, ...args]
  return [...image.entrypoint, ...(args.length > 0 ? args : image.cmd)]
}

function platformVariables(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  { token, network }: { token: string; network: Pick<RunNetwork, 'services'> | null },
): Record<string, string> {
  const { lobby_id, namespace_id } = lobby
  const region = ctx.config.regions.find(({ name }) => name === lobby.region)
  const own: Record<string, string> = {
    PLATFORM_API_URL: `http://${network?.services ?? ctx.config.internal_host}:${ctx.config.lobby_api_port}`,
    PLATFORM_TOKEN: token,
    PLATFORM_LOBBY_ID: lobby_id,
    // A version with a config has a game.
    PLATFORM_GAME_MODE_ID: gameModeId(lobby.game_id!, mode.name),
    PLATFORM_GAME_MODE_NAME: mode.name,
    PLATFORM_NAMESPACE_ID: namespace_id,
    PLATFORM_NAMESPACE_NAME: lobby.namespace_name,
    PLATFORM_VERSION_ID: lobby.version_id,
    PLATFORM_VERSION_NAME: lobby.version_name,
    // The id of a region is its name, as in responses of the matchmaker.
    PLATFORM_REGION_ID: lobby.region,
    PLATFORM_REGION_NAME: region?.display_name ?? lobby.region,
    PLATFORM_MAX_PLAYERS_NORMAL: String(lobby.max_players_normal),
    PLATFORM_MAX_PLAYERS_DIRECT: String(lobby.max_players_direct),
    PLATFORM_MAX_PLAYERS_PARTY: String(lobby.max_players_party),
    // Thousandths of a core, and bytes.
    PLATFORM_CPU: String(Math.round(lobby.cpu_cores * 1000)),
    PLATFORM_MEMORY: String(lobby.memory_mb * 1024 ** 2),
  }
  if (lobby.lobby_config !== null) own.PLATFORM_LOBBY_CONFIG = lobby.lobby_config
  if (Object.keys(lobby.tags).length > 0) own.PLATFORM_LOBBY_TAGS = JSON.stringify(lobby.tags)
  return own
}

/** Where the server listens, and where players reach it. PORT and HOST are those of the first port. */
function portVariables(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  { ports, host }: { ports: Readonly<Record<string, RunPort>>; host: string },
): Record<string, string> {
  const own: Record<string, string> = {}
  for (const item of mode.ports) {
    const variable = variableOfPort(item.name)
    const listening = ports[item.name]
    const address = lobbyAddress(ctx.config, lobby, item, ownPublicEdge(ctx.config))
    if (listening !== undefined) {
      own.PORT ??= String(listening.port)
      own.HOST ??= host
      own[`PORT_${variable}`] = String(listening.port)
    }
    if (item.port_range !== null) {
      own[`PORT_RANGE_MIN_${variable}`] = String(item.port_range.min)
      own[`PORT_RANGE_MAX_${variable}`] = String(item.port_range.max)
    }
    own[`PUBLIC_HOST_${variable}`] = address.hostname
    if (address.port !== undefined) own[`PUBLIC_PORT_${variable}`] = String(address.port)
    own[`PUBLIC_URL_${variable}`] = address.url
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
