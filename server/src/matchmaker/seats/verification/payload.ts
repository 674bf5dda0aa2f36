// The body of the question to a game's endpoint.
import type { SeatAction } from '@musterhost/contract'
import type { AddressFacts } from '../../../addresses/ip-intelligence.ts'
import { gameModeId, idOfName } from '../../../ids.ts'
import { parseExact } from '../../../text/exact-json.ts'
import type { Hold } from '../../book/holds.ts'

/** A player who gets a seat: the requester, or a member of the requester's party. */
export type VerifiedPlayer = {
  /** In canonical form. */
  address: string
  user_agent: string | null
  coordinates: AddressFacts['coordinates']
}

/** Members of the request's body that are passed on. A join has no tags and no max_players. */
export type RequestWords = {
  verification_data?: unknown
  tags?: Readonly<Record<string, string>>
  max_players?: number
  lobby_config?: unknown
}

export function verificationPayload(question: {
  game_id: string
  namespace_id: string
  hold: Hold
  players: readonly VerifiedPlayer[]
  join_kind: 'normal' | 'party'
  words: RequestWords
}): string {
  const { game_id, namespace_id, hold, players, join_kind, words } = question
  const { lobby } = hold
  return JSON.stringify({
    verification_data: words.verification_data ?? null,
    game: {
      namespace_id,
      game_mode_id: gameModeId(game_id, lobby.game_mode),
      game_mode_name_id: lobby.game_mode,
      lobby: hold.plan !== null ? null : lobbyOf(hold),
      state: hold.plan !== null || lobby.state === null ? null : parseExact(lobby.state),
      config: words.lobby_config ?? null,
      tags: words.tags ?? {},
      dynamic_max_players: words.max_players ?? null,
    },
    clients: Object.fromEntries(
      players.map(({ address, user_agent, coordinates }) => [
        address,
        { user_agent, latitude: coordinates?.latitude ?? null, longitude: coordinates?.longitude ?? null },
      ]),
    ),
    join_kind,
    kind: hold.action satisfies SeatAction,
  })
}

function lobbyOf({ lobby }: Hold) {
  return {
    lobby_id: lobby.lobby_id,
    region_id: idOfName(lobby.region),
    region_name_id: lobby.region,
    // RFC 9110, IMF-fixdate.
    create_ts: new Date(lobby.create_ms).toUTCString(),
    is_closed: lobby.is_closed,
  }
}
