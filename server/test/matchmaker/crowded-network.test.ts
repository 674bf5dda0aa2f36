// Ten thousand addresses of one subscriber, as IPv6 gives them to everybody, and some other
// subscribers: each address is really there, and connects.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import { LONG_MS } from '../http/steps.ts'
import { inOwnNetwork, ip } from '../support/own-network.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'

const ADDRESSES = 10_000
const NETWORKS = 300
const AT_ONCE = 50

inOwnNetwork(import.meta.filename, () => {
  // Every address of it is this machine's.
  ip('-6 route add local 2001:db8:55::/48 dev lo')
  writeFileSync('/proc/sys/net/ipv6/ip_nonlocal_bind', '1')

  test(`${ADDRESSES} addresses in one /64 are one client: its seats and its requests are those of one`, async (t) => {
    const A_MINUTE = 120
    const platform = await startPlatform(t, {
      roles: 'api,matchmaker,edge',
      env: { MUSTER_RATE_LIMIT_SEATS: String(A_MINUTE) },
    })
    const game = await gameOf(platform)
    const begin = performance.now()
    const { API_RATE_LIMIT = 0, ...others } = await findFromEach(
      platform,
      game,
      ADDRESSES,
      (host) => `2001:db8:55:1::${host}`,
    )
    const regained = Math.ceil(((performance.now() - begin) / 60_000) * A_MINUTE)
    const passed = ADDRESSES - API_RATE_LIMIT
    assert.ok(passed >= A_MINUTE && passed <= A_MINUTE + regained, `${passed} passed`)
    assert.deepEqual(others, { answered: 8, MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: passed - 8 })
    // As many networks are as many clients.
    const networks = await findFromEach(platform, game, NETWORKS, (host) => `2001:db8:55:${host}::1`)
    assert.deepEqual(networks, { answered: NETWORKS })
    assert.equal(await game.seatsTaken(), 8 + NETWORKS)
  })
})

async function gameOf(platform: Platform): Promise<TestGame> {
  platform.playServers()
  const game_modes = { default: { max_players: 256, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }
  return platform.game({ matchmaker: { game_modes }, limits: { lobby_count_max: 1_000 } })
}

/** Through the edge, of each address one; what came of them, by code. */
async function findFromEach(
  platform: Platform,
  game: TestGame,
  count: number,
  addressOf: (host: string) => string,
): Promise<Record<string, number>> {
  const codes: Record<string, number> = {}
  let next = 0
  const go = async (): Promise<void> => {
    while (next < count) {
      // From 0x1000 on: never ::1 of anything else's network.
      const host = (0x1000 + next++).toString(16)
      const call = request({
        host: '::1',
        port: platform.ctx.config.edge_http_port,
        localAddress: addressOf(host),
        agent: false,
        method: 'POST',
        path: findLobby.path,
        headers: {
          host: 'localhost',
          'content-type': 'application/json',
          authorization: `Bearer ${game.public_token}`,
        },
      })
      call.end('{"game_modes":["default"]}')
      const [response] = (await once(call, 'response')) as [IncomingMessage]
      const body = await text(response)
      const code = response.statusCode === 200 ? 'answered' : (JSON.parse(body) as { code: string }).code
      codes[code] = (codes[code] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, go))
  return codes
}
