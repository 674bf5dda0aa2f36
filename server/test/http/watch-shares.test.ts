// A few clients wait for as much as they can, and another client still gets what it waits for.
import assert from 'node:assert/strict'
import { Agent, type ClientRequest, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { completeDeviceLink, getDeviceLink, getKvEntry, prepareDeviceLink, putKvEntry } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { from, TRUSTING } from './steps.ts'
import { identityOf } from './world.ts'

type WaitingPolls = { refused: Map<number, number>; waiting: () => number; end: () => void }

/** Long polls of `client_count` addresses, `each` of every address, sent and not waited for. */
async function sendPolls(
  t: TestContext,
  url: string,
  { client_count, each, headers = {} }: { client_count: number; each: number; headers?: Record<string, string> },
): Promise<WaitingPolls> {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })
  const refused = new Map<number, number>()
  const open = new Set<ClientRequest>()
  const send = (client: number): Promise<void> =>
    new Promise((resolve) => {
      const call = request(url, { agent, headers: { ...from(`198.51.100.${client}`).headers, ...headers } })
      open.add(call)
      call.on('error', () => open.delete(call))
      call.on('response', (response) => {
        open.delete(call)
        refused.set(response.statusCode!, (refused.get(response.statusCode!) ?? 0) + 1)
        response.resume()
      })
      // Its place in the queue of the server is certain once the next client may begin.
      call.on('socket', (socket) => socket.once('connect', resolve))
      call.end()
    })
  for (let client = 1; client <= client_count; client++) {
    await Promise.all(Array.from({ length: each }, () => send(client)))
  }
  const end = (): void => {
    for (const call of open) call.destroy()
    agent.destroy()
  }
  t.after(end)
  return { refused, waiting: () => open.size, end }
}

test('clients that wait for device links in great numbers do not keep another client from its link', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  const { game_id } = await platform.game()
  const anyone = createClient({ url: platform.api_url })
  const { device_link_token } = await anyone.call(prepareDeviceLink, {})
  const link = new URLSearchParams({ device_link_token, watch_index: 'pending' })
  // Half of them would have been enough to take all places.
  const attack = await sendPolls(t, `${platform.api_url}/cloud/devices/links?${link}`, { client_count: 25, each: 80 })
  await until('the attack to have all that it gets', () => attack.waiting() <= 1_000)
  assert.ok(attack.waiting() > 900, String(attack.waiting()))

  const honest = await anyone.call(prepareDeviceLink, {})
  const query = { device_link_token: honest.device_link_token, watch_index: 'pending' }
  const waiting = anyone.call(getDeviceLink, { query, ...from('203.0.113.9') })
  await platform.client.call(completeDeviceLink, { body: { device_link_token: honest.device_link_token, game_id } })
  assert.match((await waiting).cloud_token ?? '', /^cloud\./)
})

test('clients that watch entries in great numbers do not keep another client from watching', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  const game = await platform.game()
  const { namespace_id } = game
  const attacker = await identityOf(game)
  const watch = new URLSearchParams({ key: 'score', watch_index: '0' })
  const attack = await sendPolls(t, `${platform.api_url}/kv/entries?${watch}`, {
    client_count: 11,
    each: 500,
    headers: { authorization: `Bearer ${attacker}` },
  })
  await until('the attack to have all that it gets', () => attack.waiting() <= 5_000)
  // On a machine that needs longer than a long poll for all of them it is fewer.
  t.diagnostic(`${attack.waiting()} of the attack wait`)

  const honest = platform.as(await identityOf(game))
  const waiting = honest.call(getKvEntry, { query: { key: 'mine', watch_index: '0' }, ...from('203.0.113.9') })
  await platform.client.call(putKvEntry, { body: { namespace_id, key: 'mine', value: 7 } })
  assert.equal((await waiting).value, 7)
})
