// Opens many lobbies of a game by the public operations: create, and ready from each lobby.
import {
  type BodyOf,
  completeUpload,
  createGame,
  createGameBuild,
  createGameNamespaceTokenPublic,
  createGameVersion,
  createGroup,
  createLobby,
  getGameById,
  setLobbyReady,
  updateGameNamespaceMatchmakerConfig,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import type { BenchPlatform } from '../platform.ts'

const UNLIMITED = 4_294_967_295
/** Calls of create and ready under way at once. */
const AT_ONCE_MAX = 64
const LOOK_EVERY_MS = 20

export type BenchGame = { game_id: string; namespace_id: string; public_token: string }

export async function newGame(
  { api }: BenchPlatform,
  options: {
    archive: Uint8Array
    docker: Record<string, unknown>
    matchmaker: NonNullable<VersionConfig['matchmaker']>
  },
): Promise<BenchGame> {
  const { group_id } = await api.call(createGroup, { body: { display_name: 'Bench' } })
  const { game_id } = await api.call(createGame, { body: { display_name: 'Bench', developer_group_id: group_id } })
  const { game } = await api.call(getGameById, { params: { game_id } })
  const namespace_id = game.namespaces.find((namespace) => namespace.name_id === 'prod')!.namespace_id
  const build = await api.call(createGameBuild, {
    params: { game_id },
    body: {
      display_name: 'Bench',
      image_tag: 'bench:1',
      image_file: { path: 'server.tar.gz', content_length: options.archive.length },
    },
  })
  await fetch(build.image_presigned_request!.url, { method: 'PUT', body: new Uint8Array(options.archive) })
  await api.call(completeUpload, { params: { upload_id: build.upload_id } })
  const config = {
    matchmaker: { ...options.matchmaker, docker: { image_id: build.build_id, ...options.docker } },
    kv: {},
  } as VersionConfig
  const { version_id } = await api.call(createGameVersion, { params: { game_id }, body: { display_name: '1', config } })
  const params = { game_id, namespace_id }
  await api.call(updateGameNamespaceVersion, { params, body: { version_id } })
  await api.call(updateGameNamespaceMatchmakerConfig, {
    params,
    body: { lobby_count_max: UNLIMITED, max_players_per_client: UNLIMITED },
  })
  const { token } = await api.call(createGameNamespaceTokenPublic, { params })
  return { game_id, namespace_id, public_token: token }
}

/** Opens lobbies by create, each ready and with all but one of its seats free. `more`: further members of the body. */
export async function openLobbies(
  platform: BenchPlatform,
  game: BenchGame,
  count: number,
  more: Partial<BodyOf<typeof createLobby>> = {},
): Promise<void> {
  const player = createClient({ url: platform.matchmaker_url, token: game.public_token })
  const end = readyAll(platform)
  let left = count
  await Promise.all(
    Array.from({ length: AT_ONCE_MAX }, async () => {
      while (left-- > 0) await player.call(createLobby, { body: { game_mode: 'default', ...more } })
    }),
  )
  await end()
}

/** Acts as the servers of lobbies without a process: calls ready for each that starts. Returns a function that ends it. */
function readyAll(platform: BenchPlatform): () => Promise<void> {
  const seen = new Set<string>()
  let is_over = false
  const looking = (async () => {
    while (!is_over) {
      const rows = await platform.database.db
        .selectFrom('lobbies')
        .where('ready_ts', 'is', null)
        .where('stop_ts', 'is', null)
        .select(['lobby_id', 'namespace_id'])
        .execute()
      const fresh = rows.filter(({ lobby_id }) => !seen.has(lobby_id))
      for (const { lobby_id } of fresh) seen.add(lobby_id)
      await Promise.all(fresh.map((lobby) => lobbyClient(platform, lobby).call(setLobbyReady, {})))
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    }
  })()
  return async () => {
    is_over = true
    await looking
  }
}

export function lobbyClient(platform: BenchPlatform, lobby: { lobby_id: string; namespace_id: string }) {
  const { lobby_id, namespace_id } = lobby
  const token = platform.keys.issue(
    { kind: 'lobby', lobby_id, namespace_id },
    { now_ms: Date.now(), lifetime_ms: null },
  )
  return createClient({ url: platform.matchmaker_url, token })
}
