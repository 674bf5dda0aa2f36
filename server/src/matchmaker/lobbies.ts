// What lobbies say of themselves, and what is told of them.
import { ApiError, type listLobbies, type QueryOf, type ResponseOf } from '@muster/contract'
import type { CallerOf } from '../caller.ts'
import type { Lobby } from './book/lobby.ts'
import type { Desk } from './desk.ts'
import { answerRegions } from './regions.ts'

const STATE_BYTES_MAX = 16 * 1024

export async function readyLobby(desk: Desk, caller: CallerOf<'lobby'>) {
  await desk.books.commit(caller.namespace_id, (book, now_ms) => book.ready(caller.lobby_id, now_ms))
  return {}
}

export async function closeLobby(desk: Desk, caller: CallerOf<'lobby'>, is_closed: boolean) {
  await desk.books.commit(caller.namespace_id, (book) => book.setClosed(caller.lobby_id, is_closed))
  return {}
}

/** No body and null both clear it. */
export async function writeLobbyState(desk: Desk, caller: CallerOf<'lobby'>, state: unknown) {
  const text = state === undefined || state === null ? null : JSON.stringify(state)
  if (text !== null && Buffer.byteLength(text) > STATE_BYTES_MAX) {
    throw new ApiError('API_BODY_TOO_LARGE', { bytes_max: STATE_BYTES_MAX })
  }
  await desk.books.commit(caller.namespace_id, (book) => book.setState(caller.lobby_id, text))
  return {}
}

/**
 * Waits for what is being committed: nobody is told a state that is then undone. A lobby's own token dies with it
 * (TOKEN_REVOKED).
 */
export function stateOfLobby(desk: Desk, caller: CallerOf<'lobby' | 'namespace'>, lobby_id: string): Promise<unknown> {
  return desk.books.commit(caller.namespace_id, (book) => {
    if (caller.kind === 'lobby' && book.lobbies.get(caller.lobby_id)?.stop_ms !== null) {
      return { refused: 'TOKEN_REVOKED' }
    }
    const lobby = book.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return { refused: 'MATCHMAKER_LOBBY_NOT_FOUND' }
    return { changes: [], result: lobby.state === null ? null : (JSON.parse(lobby.state) as unknown) }
  })
}

export async function listOpenLobbies(
  desk: Desk,
  namespace_id: string,
  address: string,
  query: QueryOf<typeof listLobbies>,
): Promise<ResponseOf<typeof listLobbies>> {
  const { version_id, game_modes } = await desk.namespaces.get(namespace_id)
  const listable = new Set([...game_modes.values()].filter((mode) => mode.listable).map((mode) => mode.name))
  const page = await desk.books.commit(namespace_id, (book) => {
    const { lobbies, more } = book.list({ version_id, game_modes: listable, after: query.anchor ?? null })
    return {
      changes: [],
      result: { lobbies: lobbies.map((lobby) => infoOf(lobby, query.include_state === true)), more },
    }
  })
  const { regions } = await answerRegions(desk, namespace_id, address)
  const last = page.lobbies.at(-1)
  return {
    game_modes: [...game_modes.keys()].map((game_mode_id) => ({ game_mode_id })),
    regions,
    lobbies: page.lobbies,
    ...(page.more && last !== undefined ? { anchor: last.lobby_id } : {}),
  }
}

function infoOf(lobby: Lobby, include_state: boolean) {
  return {
    region_id: lobby.region,
    game_mode_id: lobby.game_mode,
    lobby_id: lobby.lobby_id,
    max_players_normal: lobby.max_players_normal,
    max_players_direct: lobby.max_players_direct,
    max_players_party: lobby.max_players_party,
    total_player_count: lobby.players.size,
    ...(lobby.is_stalled ? { is_stalled: true } : {}),
    ...(include_state ? { state: lobby.state === null ? null : (JSON.parse(lobby.state) as unknown) } : {}),
  }
}
