// The response to a request for a seat: where the lobby is reached, and the player token that its server will ask for.
// Everything but the token is the same for all players of a lobby, and is serialised once.
import type { findLobby, ResponseOf } from '@musterhost/contract'
import { lobbyAddress } from '../../config/lobby-addresses.ts'
import { type Prepared, prepare } from '../../text/json-text.ts'
import type { SeatTaken } from '../book/commands.ts'
import type { Lobby, Player } from '../book/lobby.ts'
import { type Edges, edgeOf } from '../watch/edge-ports.ts'
import type { MatchmakerContext } from './context.ts'
import type { MeasuredLatencies } from './regions.ts'

type Seat = ResponseOf<typeof findLobby>
export type SeatAnswer = Prepared<Seat>

/** The token must outlive the player's stay, so that its end can be reported with it. The seat itself expires in minutes. */
const PLAYER_TOKEN_LIFETIME_MS = 90 * 24 * 60 * 60_000
/** Stands for the token while the response is prepared. Nothing else in a response contains NUL. */
const TOKEN_PLACE = '\0'

/**
 * Everything in it follows from the seat, the request and the edges that serve its lobby. So a repeated request gets the same response,
 * byte for byte, unless an edge has come or gone.
 */
export async function seatAnswer(
  ctx: MatchmakerContext,
  namespace_id: string,
  seat: SeatTaken,
  latencies_ms: MeasuredLatencies = null,
): Promise<SeatAnswer> {
  const book = ctx.books.book(namespace_id)
  const lobby = book?.lobbies.get(seat.lobby_id)
  const player = book?.players.get(seat.player_id)
  if (lobby === undefined || player === undefined) throw new Error('the book does not have the seat that is answered')
  const token = playerTokenFor(ctx, namespace_id, player)
  const expected_ms = latencies_ms?.get(lobby.region)
  if (expected_ms !== undefined || player.is_spectator) {
    const own = { expected_ms, is_spectator: player.is_spectator }
    return prepare((await seatTexts(ctx, lobby, ctx.edges(), own)).join(token))
  }
  const known = ctx.seat_texts.get(lobby)
  const texts = known?.edges === ctx.edges() ? known.texts : await prepareTexts(ctx, lobby)
  const text = texts.join(token)
  const team = player.match?.team ?? null
  return prepare(team === null ? text : `${text.slice(0, -1)},"team":${JSON.stringify(team)}}`)
}

/** The same for each call. */
export function playerTokenFor(
  { keys }: MatchmakerContext,
  namespace_id: string,
  { player_id, lobby_id, create_ms, is_spectator }: Player,
): string {
  const subject = { kind: 'player', player_id, lobby_id, namespace_id } as const
  return keys.issue(is_spectator ? { ...subject, role: 'spectator' } : subject, {
    now_ms: create_ms,
    lifetime_ms: PLAYER_TOKEN_LIFETIME_MS,
    token_id: player_id,
  })
}

async function prepareTexts(ctx: MatchmakerContext, lobby: Lobby): Promise<readonly string[]> {
  const edges = ctx.edges()
  const texts = await seatTexts(ctx, lobby, edges)
  ctx.seat_texts.set(lobby, { texts, edges })
  return texts
}

/** `own`: what is not the same for all players of the lobby. `expected_ms`: the client measured it to the region. */
async function seatTexts(
  ctx: MatchmakerContext,
  lobby: Lobby,
  edges: Edges,
  own: { expected_ms?: number | undefined; is_spectator?: boolean | undefined } = {},
): Promise<readonly string[]> {
  const { config } = ctx
  const mode = (await ctx.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  const ports: Seat['ports'] = {}
  for (const item of mode?.ports ?? []) {
    const number = lobby.edge_ports.find(({ name }) => name === item.name) ?? null
    ports[item.name] = lobbyAddress(config, lobby, item, edgeOf(edges, lobby.node_id, number))
  }
  const region = config.regions.find((item) => item.name === lobby.region)
  const { expected_ms, is_spectator } = own
  const player = { token: TOKEN_PLACE, ...(is_spectator && { role: 'spectator' as const }) }
  const seat: Seat = {
    lobby: {
      lobby_id: lobby.lobby_id,
      version_id: lobby.version_id,
      ...(lobby.code != null && { code: lobby.code }),
      region: {
        ...{ region_id: lobby.region, display_name: region?.display_name ?? lobby.region },
        ...(expected_ms !== undefined && { expected_ms }),
      },
      ports,
      player,
    },
    ports,
    player,
  }
  return JSON.stringify(seat).split(JSON.stringify(TOKEN_PLACE).slice(1, -1))
}
