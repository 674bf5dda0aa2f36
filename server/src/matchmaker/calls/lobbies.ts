// What lobbies report about themselves, and what is read about them.
import { ApiError, type listLobbies, type QueryOf, type ResponseOf } from '@musterhost/contract'
import { clientKey } from '../../addresses/client-ip.ts'
import { type Prepared, prepare } from '../../text/json-text.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import * as decide from '../book/decide.ts'
import type { Lobby } from '../book/lobby.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { recordOfClient } from '../seats/version-pin.ts'
import { type GameModeNames, gameModeNames } from './game-mode-names.ts'
import { regionsFor } from './regions.ts'

/** Longest state of a lobby, as JSON text. */
const STATE_BYTES_MAX = 16 * 1024

export async function readyLobby(ctx: MatchmakerContext, caller: CallerOf<'lobby'>) {
  await ctx.books.commit(caller.namespace_id, (book, { now_ms }) => decide.ready(book, caller.lobby_id, now_ms))
  return {}
}

export async function closeLobby(ctx: MatchmakerContext, caller: CallerOf<'lobby'>, is_closed: boolean) {
  await ctx.books.commit(caller.namespace_id, (book) => decide.setClosed(book, caller.lobby_id, is_closed))
  return {}
}

/** A missing body and null clear the state. */
export async function writeLobbyState(ctx: MatchmakerContext, caller: CallerOf<'lobby'>, state: unknown) {
  const text = state === undefined || state === null ? null : JSON.stringify(state)
  if (text !== null && Buffer.byteLength(text) > STATE_BYTES_MAX) {
    throw new ApiError('API_BODY_TOO_LARGE', { bytes_max: STATE_BYTES_MAX })
  }
  await ctx.books.commit(caller.namespace_id, (book) => decide.setState(book, caller.lobby_id, text))
  return {}
}

/**
 * Waits for the commit under way, so that a state which is then undone is never returned. A stopped lobby's own token is
 * refused (TOKEN_REVOKED).
 */
export function stateOfLobby(ctx: MatchmakerContext, caller: CallerOf<'lobby' | 'namespace'>, lobby_id: string) {
  return ctx.books.commit(caller.namespace_id, (book) => {
    if (caller.kind === 'lobby' && book.lobbies.get(caller.lobby_id)?.stop_ms !== null) {
      return { refused: 'TOKEN_REVOKED' }
    }
    const lobby = book.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return { refused: 'MATCHMAKER_LOBBY_NOT_FOUND' }
    return { changes: [], result: prepare<unknown>(lobby.state ?? 'null') }
  })
}

export async function listOpenLobbies(
  ctx: MatchmakerContext,
  namespace_id: string,
  client_ip: string,
  query: QueryOf<typeof listLobbies>,
): Promise<Prepared<ResponseOf<typeof listLobbies>>> {
  const namespace = recordOfClient(await ctx.namespaces.get(namespace_id), clientKey(client_ip))
  const { game_id, version_id, game_modes } = namespace
  const listable = new Set([...game_modes.values()].filter((mode) => mode.listable).map((mode) => mode.name))
  const names = new Map([...game_modes.keys()].map((name) => [name, gameModeNames(game_id, name)]))
  const page = await ctx.books.commit(namespace_id, (book) => {
    const { lobbies, more } = book.list({ version_id, game_modes: listable, after: query.anchor ?? null })
    return {
      changes: [],
      result: {
        texts: lobbies.map((lobby) => infoText(lobby, names.get(lobby.game_mode), query.include_state === true)),
        anchor: more ? lobbies.at(-1)?.lobby_id : undefined,
      },
    }
  })
  const regions = await regionsFor(ctx, namespace_id, client_ip)
  const rest = JSON.stringify({
    game_modes: [...names.values()],
    regions,
    anchor: page.anchor,
  })
  return prepare(`{"lobbies":[${page.texts.join(',')}],${rest.slice(1)}`)
}

/** JSON text. A state is not parsed: its numbers keep all digits, and a large one costs little. */
function infoText(lobby: Lobby, game_mode: GameModeNames | undefined, include_state: boolean): string {
  const text = JSON.stringify({
    region_id: lobby.region,
    ...game_mode,
    lobby_id: lobby.lobby_id,
    max_players_normal: lobby.max_players_normal,
    max_players_direct: lobby.max_players_direct,
    max_players_party: lobby.max_players_party,
    total_player_count: lobby.players.size,
    ...(lobby.max_spectators ? { max_spectators: lobby.max_spectators, spectator_count: lobby.spectators.size } : {}),
    ...(lobby.is_stalled ? { is_stalled: true } : {}),
  })
  return include_state ? `${text.slice(0, -1)},"state":${lobby.state ?? 'null'}}` : text
}
