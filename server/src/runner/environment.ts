// The environment of a lobby: its ids, its place, its token, its ports, and the variables of the version config. The
// driver adds only PATH, HOME and TMPDIR. The config cannot replace variables of the platform.
import type { GameModeConfig } from '@muster/contract'
import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import { gameModeId } from '../ids.ts'
import type { WantedLobby } from './rows.ts'

/** The token is valid for its lobby only, and the matchmaker refuses it once the lobby has stopped. */
const LOBBY_TOKEN_LIFETIME_MS = 365 * 24 * 3_600_000

/** Names that `env` of the config may not set. Variables of a loader or an interpreter are allowed. */
const OWN_NAMES = /^(PLATFORM_|PORT_)|^(PATH|HOME|TMPDIR)$/

export function lobbyEnvironment(
  ctx: Context,
  lobby: WantedLobby,
  mode: GameModeConfig,
  ports: Readonly<Record<string, RunPort>>,
): Record<string, string> {
  const { lobby_id, namespace_id } = lobby
  const region = ctx.config.regions.find(({ name }) => name === lobby.region)
  const token = ctx.keys.issue(
    { kind: 'lobby', lobby_id, namespace_id },
    { now_ms: ctx.now(), lifetime_ms: LOBBY_TOKEN_LIFETIME_MS },
  )
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(mode.env)) if (!OWN_NAMES.test(name)) env[name] = value
  Object.assign(env, {
    PLATFORM_API_URL: `http://${ctx.config.internal_host}:${ctx.config.lobby_api_port}`,
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
  })
  if (lobby.lobby_config !== null) env.PLATFORM_LOBBY_CONFIG = lobby.lobby_config
  if (Object.keys(lobby.tags).length > 0) env.PLATFORM_LOBBY_TAGS = JSON.stringify(lobby.tags)
  for (const [name, { port }] of Object.entries(ports)) env[`PORT_${variableOf(name)}`] = String(port)
  for (const { name, port_range } of mode.ports) {
    if (port_range === null) continue
    env[`PORT_RANGE_MIN_${variableOf(name)}`] = String(port_range.min)
    env[`PORT_RANGE_MAX_${variableOf(name)}`] = String(port_range.max)
  }
  return env
}

function variableOf(port_name: string): string {
  return port_name.toUpperCase().replaceAll('-', '_')
}
