// A game that requires a captcha, and its players: one client per connection, each of which solves a captcha before a
// round. This process also serves the provider. The published test key of Turnstile accepts every response.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findLobby, type VersionConfig } from '@musterhost/contract'
import { edgeProof } from '@musterhost/server/tokens/edge-proof'
import { EDGE_PROOF_HEADER } from '@musterhost/server/wire/headers'
import { type Answer, postRequest, runRound, type Target } from '../load.ts'
import type { BenchPlatform } from '../platform.ts'
import type { BenchGame } from './games.ts'

export const CAPTCHA: NonNullable<NonNullable<VersionConfig['matchmaker']>['captcha']> = {
  // More finds than a client makes in a round.
  requests_before_reverify: 600,
  verification_ttl: 12 * 3_600_000,
  turnstile: { site_key: '1x00000000000000000000AA', secret_key: '1x0000000000000000000000000000000AA' },
}
/** The member of a body that carries a solved captcha. */
export const SOLVED = { captcha: { turnstile: { client_response: 'XXXX.DUMMY.TOKEN.XXXX' } } }

/** Returns the settings that make a platform use this provider. */
export async function startProvider(): Promise<{ settings: Record<string, string>; stop: () => void }> {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.end('{"success":true}'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return {
    settings: { MUSTER_TURNSTILE_URL: url },
    stop: () => void server.close(),
  }
}

/** Every connection is another client. Its address is in a header with the edge's proof, like behind the edge. */
export function clientsTarget(platform: BenchPlatform, game: BenchGame, is_solving: boolean): Target {
  const wish = { game_modes: ['default'], prevent_auto_create_lobby: true }
  const proof = edgeProof(platform.keys)
  const requestOf = (connection: number): Buffer => {
    const headers = {
      authorization: `Bearer ${game.public_token}`,
      'x-forwarded-for': `198.18.0.${connection % 256}`,
      [EDGE_PROOF_HEADER]: proof,
    }
    return postRequest(findLobby.path, headers, { ...wish, ...(is_solving && SOLVED) })
  }
  return { port: Number(new URL(platform.matchmaker_url).port), request: requestOf(0), requestOf }
}

/** Sends one request of each client, with a captcha. Returns the seats, which the caller frees. */
export async function solveCaptchas(platform: BenchPlatform, game: BenchGame, clients: number): Promise<Answer[]> {
  const target = clientsTarget(platform, game, true)
  return (await runRound(target, { count: clients, connections: clients })).answers
}
