// A game behind a captcha, and its players: as many clients as there are connections, each of which solves one before a
// round. The provider is a server of this process; Turnstile's published test key passes everybody.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findLobby, type VersionConfig } from '@muster/contract'
import { EDGE_PROOF_HEADER, edgeProof } from '@muster/server/tokens/edge-proof'
import { type Answer, postRequest, runRound, type Target } from '../load.ts'
import type { BenchPlatform } from '../platform.ts'
import type { BenchGame } from './games.ts'

export const CAPTCHA: NonNullable<NonNullable<VersionConfig['matchmaker']>['captcha']> = {
  // More than a client makes in a round.
  requests_before_reverify: 600,
  verification_ttl: 12 * 3_600_000,
  turnstile: { site_key: '1x00000000000000000000AA', secret_key: '1x0000000000000000000000000000000AA' },
}
/** What a body has that comes with a solved captcha. */
export const SOLVED = { captcha: { turnstile: { client_response: 'XXXX.DUMMY.TOKEN.XXXX' } } }

/** Answers the settings that make a platform ask it. */
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

/** Every connection is another client, whose address is told with the edge's proof: so it is where the platform runs. */
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

/** One request of each client, with a captcha. Answers the seats, which are to be freed. */
export async function solveCaptchas(platform: BenchPlatform, game: BenchGame, clients: number): Promise<Answer[]> {
  const target = clientsTarget(platform, game, true)
  return (await runRound(target, { count: clients, connections: clients })).answers
}
