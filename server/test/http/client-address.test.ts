import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorBody, explainRay, findLobby, getOverview } from '@musterhost/contract'
import { explanationSentences } from '@musterhost/contract/explanation-words'
import { buildBody } from '../cloud/steps.ts'
import { rawClient } from '../edge/platform.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** Every header that some proxy uses to name the client. */
const FORGED: Record<string, string> = {
  ...Object.fromEntries(
    ['x-forwarded-for', 'x_forwarded_for', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'client-ip']
      .concat('true-client-ip', 'cf-connecting-ip', 'fastly-client-ip')
      .map((name) => [name, '203.0.113.7']),
  ),
  forwarded: 'for=203.0.113.7',
  'x-muster-edge': 'forged',
}

/** The client keys of the players, once there are `count` players. */
function clientsOf({ ctx }: Platform, count: number): Promise<string[]> {
  return until('the players to be projected', async () => {
    const players = await ctx.db.selectFrom('players').select('client').execute()
    return players.length === count && players.map(({ client }) => client).sort()
  })
}

async function findFrom(url: string, game: TestGame, headers: Record<string, string>) {
  const response = await fetch(`${url}${findLobby.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${game.public_token}`, ...headers },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  return { status: response.status, text: await response.text() }
}

async function clientOfFind(url: string, game: TestGame, headers: Record<string, string>): Promise<string> {
  const { status, text } = await findFrom(url, game, headers)
  assert.equal(status, 200, text)
  return (JSON.parse(text) as { lobby: { lobby_id: string } }).lobby.lobby_id
}

test('the address of a client is what the edge says, and nobody else on the machine can say it', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_TRUSTED_PROXIES: '' },
  })
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 3 } })
  await clientOfFind(platform.matchmaker_url, game, FORGED)
  await clientOfFind(platform.edge_url, game, FORGED)
  assert.deepEqual(await clientsOf(platform, 2), ['127.0.0.1', '127.0.0.1'])

  await t.test('a proxy that nobody named is a problem, a warning of the edge, and part of the refusal', async () => {
    const { client, edge_url, ctx } = platform
    const { problems } = await client.call(getOverview, {})
    assert.deepEqual(
      problems.filter(({ kind }) => kind === 'unnamed_proxy'),
      [],
      'one client is no proxy',
    )
    await clientOfFind(edge_url, game, { 'x-forwarded-for': '198.51.100.1, 203.0.113.8' })
    const refused = await findFrom(edge_url, game, { 'x-forwarded-for': '203.0.113.9' })
    const refusal = JSON.parse(refused.text) as ErrorBody
    assert.equal(refusal.code, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    const problem = await until('the edge reports the proxy', async () => {
      const found = await client.call(getOverview, {})
      return found.problems.find(({ kind }) => kind === 'unnamed_proxy')
    })
    assert.match(problem.text, /^Requests from 127\.0\.0\.1 name several clients .*MUSTER_TRUSTED_PROXIES/)
    const { warnings } = await ctx.health.readiness()
    assert.ok(warnings.includes(problem.text))
    const { explanation } = await client.call(explainRay, { params: { ray_id: refusal.ray_id } })
    assert.equal(explanation.unnamed_proxy, '127.0.0.1')
    assert.match(explanationSentences(explanation).join(' '), /All players behind the proxy 127\.0\.0\.1 count as one/)
  })
})

test('a proxy that the operator trusts is believed by the edge, and the edge by the matchmaker', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_TRUSTED_PROXIES: '127.0.0.0/8, 198.51.100.7' },
  })
  platform.playServers()
  const game = await platform.game()
  const chains = {
    '203.0.113.1': '198.51.100.1, 203.0.113.1',
    '203.0.113.2': '198.51.100.1, 203.0.113.2, 198.51.100.7, 127.0.0.9',
    '2001:db8:1:2::/64': '198.51.100.1, [2001:DB8:1:2::3]:4711',
    '127.0.0.1': '203.0.113.4, nonsense',
  }
  for (const chain of Object.values(chains)) await clientOfFind(platform.edge_url, game, { 'x-forwarded-for': chain })
  // The same said in two lines is one chain, in their order.
  const client = rawClient(t, Number(new URL(platform.edge_url).port))
  const body = '{"game_modes":["default"]}'
  const lines = ['Host: localhost', `Authorization: Bearer ${game.public_token}`, 'Content-Type: application/json']
  lines.push('X-Forwarded-For: 198.51.100.1, 203.0.113.5', 'x-forwarded-for: 198.51.100.7')
  client.write(
    `POST ${findLobby.path} HTTP/1.1\r\n${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  assert.match(await client.read((bytes) => bytes.endsWith('}')), /^HTTP\/1\.1 200 /)
  // Nobody but the proxies' own header is heard.
  const { 'x-forwarded-for': _, ...other } = FORGED
  await clientOfFind(platform.edge_url, game, other)
  assert.deepEqual(
    await clientsOf(platform, 6),
    ['127.0.0.1', '127.0.0.1', ...Object.keys(chains).slice(0, 3), '203.0.113.5'].sort(),
  )
})

test('what is forwarded of host and scheme decides nothing, whichever client or proxy forwards it', async (t) => {
  for (const MUSTER_TRUSTED_PROXIES of ['', '127.0.0.0/8']) {
    const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env: { MUSTER_TRUSTED_PROXIES } })
    platform.playServers()
    const game = await platform.game()
    const site_host = `${game.name_id}.cdn.localhost`
    const forged = {
      'x-forwarded-host': site_host,
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '1',
      forwarded: `host=${site_host};proto=https`,
      'x-original-host': site_host,
    }
    const ask = async (url: string, path: string, token: string | null, body: unknown, more = {}) => {
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }), ...more },
        body: JSON.stringify(body),
      })
      return { status: answer.status, cookie: answer.headers.get('set-cookie'), text: await answer.text() }
    }
    const builds = `/cloud/games/${game.game_id}/builds`
    const origin = async (more: object): Promise<string> => {
      const { text } = await ask(platform.api_url, builds, platform.token, buildBody(Buffer.alloc(5)), more)
      return new URL((JSON.parse(text) as { image_presigned_request: { url: string } }).image_presigned_request.url)
        .origin
    }
    assert.equal(await origin(forged), await origin({}))
    for (const url of [platform.matchmaker_url, platform.edge_url]) {
      // A site's host stands for nothing where it is only said.
      const body = { game_modes: ['default'] }
      assert.equal((await ask(url, findLobby.path, null, body, forged)).status, 401)
      const { status, text, cookie } = await ask(url, findLobby.path, game.public_token, body, forged)
      assert.deepEqual([status, cookie], [200, null])
      const plain = await ask(url, findLobby.path, game.public_token, body)
      assert.deepEqual(addressesOf(text), addressesOf(plain.text))
    }
    await platform.close()
  }
})

const addressesOf = (text: string): unknown => (JSON.parse(text) as { ports: unknown }).ports
