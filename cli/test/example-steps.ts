// Examples of the folder examples/, and other folders, deployed by their muster.yaml alone.
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  createGameNamespaceTokenPublic,
  findLobby,
  getGameById,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import type { Platform } from '../../server/test/support/platform.ts'
import { createProject } from './deploy-steps.ts'

type Seat = ResponseOf<typeof findLobby>
export type DeployedExample = {
  /** The page of the example, in the namespace `prod`. */
  url: string
  /** A seat for a person at 127.0.0.1. */
  takeSeat(): Promise<Seat>
  /** Players of the lobby, and those of them who are connected. */
  seats(lobby_id: string): Promise<number>
  connected(lobby_id: string): Promise<number>
}

/** `name`: the folder of the example, and its game if `game` is absent. `prepare` runs before the deploy. */
export async function deployExample(
  t: TestContext,
  platform: Platform,
  name: string,
  { game: game_name = name, prepare }: { game?: string; prepare?: (folder: string) => void } = {},
): Promise<DeployedExample> {
  return deployFolder(t, platform, game_name, (folder) => {
    cpSync(join(import.meta.dirname, '../../examples', name), folder, {
      recursive: true,
      filter: (path) => !path.includes('node_modules'),
    })
    prepare?.(folder)
  })
}

/** `fill` writes muster.yaml and all that it names. */
export async function deployFolder(
  t: TestContext,
  platform: Platform,
  game_name: string,
  fill: (folder: string) => void,
): Promise<DeployedExample> {
  const { client, edge_url } = platform
  const { folder, game_id, run } = await createProject(t, platform, { game: game_name, server: {} })
  fill(folder)
  const { code, stdout, stderr } = await run(['deploy', '--game', game_name, '--json'], {
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  })
  if (code !== 0) throw new Error(`muster deploy ended with ${code}: ${stderr}`)
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const { token } = await client.call(createGameNamespaceTokenPublic, { params: { game_id, namespace_id } })
  const players = async (lobby_id: string) =>
    (await client.call(listMatchmakerLobbyPlayers, { params: { game_id, lobby_id } })).players
  return {
    url: (JSON.parse(stdout) as { url: string }).url,
    takeSeat: () => createClient({ url: edge_url, token }).call(findLobby, { body: { game_modes: ['default'] } }),
    seats: async (lobby_id) => (await players(lobby_id)).length,
    connected: async (lobby_id) => (await players(lobby_id)).filter(({ connect_ts }) => connect_ts != null).length,
  }
}
