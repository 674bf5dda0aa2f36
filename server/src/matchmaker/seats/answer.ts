// The answer to a seat: where the lobby is reached, and the token that its server will ask for. All of it but the token
// is the same for every player of a lobby, and is serialised once.
import type { findLobby, PortConfig, ResponseOf } from '@muster/contract'
import { mainUrl, publicUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { type Prepared, prepare } from '../../json-text.ts'
import type { SeatTaken } from '../book/commands.ts'
import type { Lobby } from '../book/lobby.ts'
import type { Books } from '../shards/books.ts'
import type { Namespaces } from '../watch/namespaces.ts'
import { streamPort } from './stream-port.ts'

type Seat = ResponseOf<typeof findLobby>
export type SeatAnswer = Prepared<Seat>

/** The answer's text around the token, by lobby; gone with the lobby. */
export type SeatTexts = WeakMap<Lobby, readonly string[]>

/** The seat itself is given up after minutes; the token must outlive the player's stay, to report that it ended. */
const PLAYER_TOKEN_LIFETIME_MS = 90 * 24 * 60 * 60_000
/** Stands for the token while the answer is prepared. Nothing else in an answer has a NUL in it. */
const TOKEN_PLACE = '\0'

type MatchmakerContext = { ctx: Context; books: Books; namespaces: Namespaces; seat_texts: SeatTexts }

/** Everything in it follows from the seat, so that a repeated request is answered word for word the same. */
export async function seatAnswer(desk: MatchmakerContext, namespace_id: string, seat: SeatTaken): Promise<SeatAnswer> {
  const book = desk.books.book(namespace_id)
  const lobby = book?.lobbies.get(seat.lobby_id)
  const player = book?.players.get(seat.player_id)
  if (lobby === undefined || player === undefined) throw new Error('a seat was answered that the book does not know')
  const token = desk.ctx.keys.issue(
    { kind: 'player', player_id: seat.player_id, lobby_id: seat.lobby_id, namespace_id },
    { now_ms: player.create_ms, lifetime_ms: PLAYER_TOKEN_LIFETIME_MS, token_id: seat.player_id },
  )
  const texts = desk.seat_texts.get(lobby) ?? (await prepareTexts(desk, lobby))
  return prepare(texts.join(token))
}

async function prepareTexts(desk: MatchmakerContext, lobby: Lobby): Promise<readonly string[]> {
  const { config } = desk.ctx
  const mode = (await desk.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  const ports = joinPorts(config, lobby, mode?.ports ?? [])
  const region = config.regions.find((item) => item.name === lobby.region)
  const player = { token: TOKEN_PLACE }
  const seat: Seat = {
    lobby: {
      lobby_id: lobby.lobby_id,
      region: { region_id: lobby.region, display_name: region?.display_name ?? lobby.region },
      ports,
      player,
    },
    ports,
    player,
  }
  const texts = JSON.stringify(seat).split(JSON.stringify(TOKEN_PLACE).slice(1, -1))
  desk.seat_texts.set(lobby, texts)
  return texts
}

/**
 * HTTP and HTTPS are told on the advertised ports of the lobby's own host name; `url` is what works as it stands. For HTTPS
 * that is the path route: the main domain has a certificate wherever people come over HTTPS, and for a lobby's own host
 * there is one only where a wildcard was ordered by DNS-01 or is kept by the operator.
 */
function joinPorts(config: Config, lobby: Lobby, of_mode: readonly PortConfig[]): Seat['ports'] {
  const { lobby_id, region } = lobby
  const ports: Seat['ports'] = {}
  for (const item of of_mode) {
    const { name, protocol } = item
    const hostname = `${lobby_id}-${name}.lobby.${region}.${config.domains.job}`
    if (protocol !== 'http' && protocol !== 'https') {
      ports[name] = streamPort(config, lobby, item, hostname)
      continue
    }
    const is_tls = protocol === 'https'
    const port = is_tls ? config.advertised_https_port : config.advertised_http_port
    const url =
      config.mode === 'production' && !is_tls
        ? publicUrl(config, hostname, 'http')
        : `${mainUrl(config)}/lobbies/${lobby_id}/${name}`
    ports[name] = { host: `${hostname}:${port}`, hostname, port, is_tls, url }
  }
  return ports
}
