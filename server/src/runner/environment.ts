// The environment of a lobby: its ids, its place, its token, its ports, and the variables of the version config
// (contract/src/lobby-program.ts). The driver adds only PATH, HOME and TMPDIR.
import { type GameModeConfig, type LobbyPort, type LobbyProgram, lobbyProgram } from '@musterhost/contract'
import { lobbyAddress, ownPublicEdge } from '../config/lobby-addresses.ts'
import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import { gameModeId } from '../ids.ts'
import type { ImageStart } from '../objects/container-image/config.ts'
import type { LobbyCredentials } from '../tokens/lobby-credentials.ts'
import type { RunNetwork } from './network/lobby-networks.ts'
import { MACHINE_HOST } from './ports.ts'
import type { WantedLobby } from './rows.ts'

/** `token`: of the lobby. `secrets`: of its game. The other members are those of lobbyProgram(). */
export function programStart(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  ports: Readonly<Record<string, RunPort>>,
  network: Pick<RunNetwork, 'services'> | null,
  {
    token,
    secrets,
    home,
    image,
    host = MACHINE_HOST,
  }: LobbyCredentials & { home: string; image: ImageStart | null; host?: string },
): LobbyProgram {
  const region = ctx.config.regions.find(({ name }) => name === lobby.region)
  const facts = {
    API_URL: `http://${network?.services ?? ctx.config.internal_host}:${ctx.config.lobby_api_port}`,
    TOKEN: token,
    LOBBY_ID: lobby.lobby_id,
    // A version with a config has a game.
    GAME_MODE_ID: gameModeId(lobby.game_id!, mode.name),
    GAME_MODE_NAME: mode.name,
    NAMESPACE_ID: lobby.namespace_id,
    NAMESPACE_NAME: lobby.namespace_name,
    VERSION_ID: lobby.version_id,
    VERSION_NAME: lobby.version_name,
    // The id of a region is its name, as in responses of the matchmaker.
    REGION_ID: lobby.region,
    REGION_NAME: region?.display_name ?? lobby.region,
    MAX_PLAYERS_NORMAL: String(lobby.max_players_normal),
    MAX_PLAYERS_DIRECT: String(lobby.max_players_direct),
    MAX_PLAYERS_PARTY: String(lobby.max_players_party),
    // Thousandths of a core, and bytes.
    CPU: String(Math.round(lobby.cpu_cores * 1000)),
    MEMORY: String(lobby.memory_mb * 1024 ** 2),
    LOBBY_CONFIG: lobby.lobby_config,
    LOBBY_TAGS: Object.keys(lobby.tags).length > 0 ? JSON.stringify(lobby.tags) : null,
  }
  return lobbyProgram(mode, facts, lobbyPorts(ctx, lobby, mode, ports), { home, host, image, secrets })
}

export type ServerPorts = Readonly<Record<string, LobbyPort>>

/** Where the server listens and where players reach it, by the name of the port. */
export function lobbyPorts(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  ports: Readonly<Record<string, RunPort>>,
): ServerPorts {
  const entries = mode.ports.map((item): [string, LobbyPort] => {
    const { hostname, port = null, url } = lobbyAddress(ctx.config, lobby, item, ownPublicEdge(ctx.config))
    return [item.name, { listening: ports[item.name]?.port ?? null, public: { hostname, port, url } }]
  })
  return Object.fromEntries(entries)
}
