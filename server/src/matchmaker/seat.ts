// The answer to a seat: where the lobby is reached, and the token that its server will ask for.
import type { findLobby, ResponseOf } from '@muster/contract'
import { type Config, mainUrl, publicUrl } from '../config.ts'
import type { Context } from '../context.ts'
import type { SeatTaken } from './book.ts'
import type { Books } from './books.ts'
import type { Lobby } from './changes.ts'
import type { Namespaces } from './namespaces.ts'

export type SeatAnswer = ResponseOf<typeof findLobby>

/** The seat itself is given up after minutes; the token must outlive the player's stay, to report that it ended. */
const PLAYER_TOKEN_LIFETIME_MS = 90 * 24 * 60 * 60_000

/** Everything in it follows from the seat, so that a repeated request is answered word for word the same. */
export async function seatAnswer(
  desk: { ctx: Context; books: Books; namespaces: Namespaces },
  namespace_id: string,
  seat: SeatTaken,
): Promise<SeatAnswer> {
  const { ctx, books } = desk
  const book = books.book(namespace_id)
  const lobby = book?.lobbies.get(seat.lobby_id)
  const player = book?.players.get(seat.player_id)
  if (lobby === undefined || player === undefined) throw new Error('a seat was answered that the book does not know')
  const token = ctx.keys.issue(
    { kind: 'player', player_id: seat.player_id, lobby_id: seat.lobby_id, namespace_id },
    { now_ms: player.create_ms, lifetime_ms: PLAYER_TOKEN_LIFETIME_MS, token_id: seat.player_id },
  )
  const mode = (await desk.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  const ports = joinPorts(ctx.config, lobby, mode?.ports.map((port) => port.name) ?? [])
  const region = ctx.config.regions.find((item) => item.name === lobby.region)
  return {
    lobby: {
      lobby_id: lobby.lobby_id,
      region: { region_id: lobby.region, display_name: region?.display_name ?? lobby.region },
      ports,
      player: { token },
    },
    ports,
    player: { token },
  }
}

/** HTTP is told on the advertised port of the lobby's own host name; `url` is what works as it stands. */
function joinPorts(config: Config, { lobby_id, region }: Lobby, names: readonly string[]): SeatAnswer['ports'] {
  const ports: SeatAnswer['ports'] = {}
  for (const name of names) {
    const hostname = `${lobby_id}-${name}.lobby.${region}.${config.domains.job}`
    const port = config.advertised_http_port
    const url =
      config.mode === 'production' ? publicUrl(config, hostname) : `${mainUrl(config)}/lobbies/${lobby_id}/${name}`
    ports[name] = { host: `${hostname}:${port}`, hostname, port, is_tls: false, url }
  }
  return ports
}
