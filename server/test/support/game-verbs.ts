// What a player of a game of the tests does. The verbs are members of the game (platform.ts). A copy of the game with another
// player, `{ ...game, player }`, has them too, and they call as that player.
import { type BodyOf, createLobby, findLobby, joinLobby, listLobbies, type ResponseOf } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'

/** `signal` hangs up. */
type How = { headers?: Record<string, string>; signal?: AbortSignal }

export type GameVerbs = {
  find: (body?: Partial<BodyOf<typeof findLobby>>, how?: How) => Promise<ResponseOf<typeof findLobby>>
  join: (lobby_id: string, how?: How) => Promise<ResponseOf<typeof joinLobby>>
  create: (body?: Partial<BodyOf<typeof createLobby>>, how?: How) => Promise<ResponseOf<typeof createLobby>>
  /** Returns the public lobbies of the namespace, by what counts: their id and how many seats are taken. */
  listedLobbies: () => Promise<{ lobby_id: string; total_player_count: number }[]>
  /** Returns how many seats are taken, over all lobbies that are listed. */
  seatsTaken: () => Promise<number>
}

export const GAME_VERBS: GameVerbs & ThisType<GameVerbs & { player: Client }> = {
  find(body, how) {
    return this.player.call(findLobby, { body: { game_modes: ['default'], ...body }, ...how })
  },

  join(lobby_id, how) {
    return this.player.call(joinLobby, { body: { lobby_id }, ...how })
  },

  create(body, how) {
    return this.player.call(createLobby, { body: { game_mode: 'default', ...body }, ...how })
  },

  async listedLobbies() {
    const { lobbies } = await this.player.call(listLobbies, {})
    return lobbies.map(({ lobby_id, total_player_count }) => ({ lobby_id, total_player_count }))
  },

  async seatsTaken() {
    return (await this.listedLobbies()).reduce((sum, lobby) => sum + lobby.total_player_count, 0)
  },
}
