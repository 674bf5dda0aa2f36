// Common parts of the series of finds: games whose lobbies have room, finds that take seats, and the release of seats.

import { archive } from '@musterhost/arena/build'
import { findLobby, playerDisconnected, type ResponseOf } from '@musterhost/contract'
import { type Answer, postRequest, type Target } from '../load.ts'
import type { BenchPlatform } from '../platform.ts'
import { CAPTCHA, SOLVED } from './captcha.ts'
import { type BenchGame, lobbyClient, newGame, openLobbies } from './games.ts'
import type { Endpoint } from './verified.ts'

export type Seat = ResponseOf<typeof findLobby>

const SEATS = 256
const FREE_AT_ONCE_MAX = 32
/** The guarded game has it in another game mode than the one that is found, so its finds do not use it. */
const VERIFICATION = { url: 'https://gate.example.org/' }

/** No runner runs, so no lobby starts. The build only has to exist. */
export async function gameWithLobbies(
  platform: BenchPlatform,
  count: number,
  by: 'captcha' | Endpoint | null = null,
): Promise<BenchGame> {
  const is_guarded = by === 'captcha'
  const find = typeof by === 'object' ? by?.action : undefined
  const game = await newGame(platform, {
    archive: archive([{ path: 'server', content: Buffer.from('#!/bin/sh\n') }]),
    docker: { args: ['sh', 'server'], ports: { game: { protocol: 'http' } } },
    matchmaker: {
      max_players: SEATS,
      ...(is_guarded && { captcha: CAPTCHA }),
      game_modes: {
        default: {
          idle_grace_ms: 3_600_000,
          actions: { create: { enabled: true, enable_public: true }, ...(find && { find }) },
        },
        ...(is_guarded && { verified: { actions: { find: { enabled: true, verification_config: VERIFICATION } } } }),
      },
    },
  })
  const started = performance.now()
  await openLobbies(platform, game, count, is_guarded ? SOLVED : {})
  console.log(`  ${count} lobbies opened in ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  return game
}

export function findTarget(platform: BenchPlatform, game: BenchGame): Target {
  const headers = { authorization: `Bearer ${game.public_token}` }
  const body = { game_modes: ['default'], prevent_auto_create_lobby: true }
  return { port: Number(new URL(platform.matchmaker_url).port), request: postRequest(findLobby.path, headers, body) }
}

export function requireSeats(answers: readonly Answer[]): Seat[] {
  return answers.map(({ status, body }) => {
    if (status !== 200) throw new Error(`a find was refused: ${body}`)
    return JSON.parse(body.toString()) as Seat
  })
}

/** Not measured: it gives every round the same free seats. */
export async function freeSeats(platform: BenchPlatform, game: BenchGame, seats: readonly Seat[]): Promise<void> {
  const left = seats.values()
  const clients = new Map<string, ReturnType<typeof lobbyClient>>()
  const freeSome = async (): Promise<void> => {
    for (const { lobby, player } of left) {
      const client = clients.get(lobby.lobby_id) ?? lobbyClient(platform, { ...lobby, namespace_id: game.namespace_id })
      clients.set(lobby.lobby_id, client)
      await client.call(playerDisconnected, { body: { player_token: player.token } })
    }
  }
  await Promise.all(Array.from({ length: FREE_AT_ONCE_MAX }, freeSome))
}
