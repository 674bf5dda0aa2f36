// The body of the question to a game's endpoint.
import type { SeatAction } from '@musterhost/contract'
import type { AddressFacts } from '../../../addresses/ip-intelligence.ts'
import { gameModeId, idOfName } from '../../../ids.ts'
import { parseExact } from '../../../text/exact-json.ts'
import type { Hold } from '../../book/holds.ts'
import type { Lobby } from '../../book/lobby.ts'

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
  role?: 'player' | 'spectator' | undefined
}

/** The seat that is asked about. `existing` null: its lobby would be started for it. */
export type AskedAbout = { version_id: string; game_mode: string; existing: Lobby | null; action: SeatAction }

export function aboutHold({ lobby, plan, action }: Pick<Hold, 'lobby' | 'plan' | 'action'>): AskedAbout {
  return { version_id: lobby.version_id, game_mode: lobby.game_mode, existing: plan === null ? lobby : null, action }
}

export function verificationPayload(question: {
  game_id: string
  namespace_id: string
  about: AskedAbout
  players: readonly VerifiedPlayer[]
  join_kind: 'normal' | 'party'
  words: RequestWords
}): string {
  const { game_id, namespace_id, about, players, join_kind, words } = question
  const { game_mode, existing, action } = about
  return JSON.stringify({
    verification_data: words.verification_data ?? null,
    game: {
      namespace_id,
      game_mode_id: gameModeId(game_id, game_mode),
      game_mode_name_id: game_mode,
      lobby: existing === null ? null : lobbyOf(existing),
      state: existing === null || existing.state === null ? null : parseExact(existing.state),
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
    kind: action satisfies SeatAction,
    ...(words.role === 'spectator' && { role: words.role }),
  })
}

function lobbyOf(lobby: Lobby) {
  return {
    lobby_id: lobby.lobby_id,
    region_id: idOfName(lobby.region),
    region_name_id: lobby.region,
    // RFC 9110, IMF-fixdate.
    create_ts: new Date(lobby.create_ms).toUTCString(),
    is_closed: lobby.is_closed,
  }
}
