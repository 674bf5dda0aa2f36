import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLobby } from '@muster/contract'
import { buildBody } from '../cloud/steps.ts'
import { startPlatform, type TestGame } from '../platform.ts'
import { until } from '../until.ts'

async function clientOfFind(url: string, game: TestGame, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${url}${findLobby.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${game.public_token}`, ...headers },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return (JSON.parse(text) as { lobby: { lobby_id: string } }).lobby.lobby_id
}

test('the address of a client is what the edge says, and nobody else on the machine can say it', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_TRUSTED_PROXIES: '' },
  })
  platform.playServers()
  const game = await platform.game()
  const forged = { 'x-forwarded-for': '203.0.113.7', 'x-muster-edge': 'forged' }
  await clientOfFind(platform.matchmaker_url, game, forged)
  await clientOfFind(platform.edge_url, game, forged)
  const clients = async () => {
    const players = await platform.ctx.db.selectFrom('players').select('client').execute()
    return players.map((player) => player.client).sort()
  }
  await until('both players to be projected', async () => (await clients()).length === 2)
  assert.deepEqual(await clients(), ['127.0.0.1', '127.0.0.1'])
})

test('a proxy that the operator trusts is believed by the edge, and the edge by the matchmaker', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_TRUSTED_PROXIES: '127.0.0.0/8' },
  })
  platform.playServers()
  const game = await platform.game()
  await clientOfFind(platform.edge_url, game, { 'x-forwarded-for': '198.51.100.1, 203.0.113.7' })
  const { client } = await platform.ctx.db.selectFrom('players').select('client').executeTakeFirstOrThrow()
  assert.equal(client, '203.0.113.7')
})

test('what is forwarded of host and scheme decides nothing, whoever forwards it', async (t) => {
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
