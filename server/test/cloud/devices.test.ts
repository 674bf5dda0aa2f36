import assert from 'node:assert/strict'
import test from 'node:test'
import {
  completeDeviceLink,
  consumeGroupInvite,
  createGroupInvite,
  getDeviceLink,
  getGameById,
  inspectAuth,
  prepareDeviceLink,
  refuseDeviceLink,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { ask } from '../http/ask.ts'
import { startMailServer } from '../identity/mail-server.ts'
import { logIn, type Person } from '../identity/people.ts'
import { startPlatform } from '../support/platform.ts'
import { newGame, refused, UNKNOWN_ID } from './steps.ts'

test('a program without a browser is let in by a link', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api',
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_LOGIN: '0' },
  })
  const anyone = createClient({ url: platform.api_url })
  const game = await newGame(platform)
  const { game_id, group_id } = game
  const member = async (email: string, role: 'developer' | 'viewer'): Promise<Person> => {
    const person = await logIn(platform, mail, email)
    const { code } = await platform.client.call(createGroupInvite, { params: { group_id }, body: { role } })
    await person.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
    return person
  }
  const developer = await member('dev@example.com', 'developer')
  const complete = (person: Person, device_link_token: string, chosen = game_id) =>
    person.client.call(completeDeviceLink, { body: { device_link_token, game_id: chosen } })
  const get = (device_link_token: string, watch_index?: string) =>
    anyone.call(getDeviceLink, { query: { device_link_token, ...(watch_index === undefined ? {} : { watch_index }) } })

  await t.test('who waits is answered as soon as the link is complete, with a token of the chosen game', async () => {
    const { device_link_token, device_link_url, device_link_id } = await anyone.call(prepareDeviceLink, {})
    assert.equal(new URL(device_link_url).pathname, `/devices/link/${device_link_token}`)
    const pending = await get(device_link_token)
    assert.equal(pending.cloud_token, undefined)
    const waiting = get(device_link_token, pending.watch.index)
    await complete(developer, device_link_token)
    const begin_ms = performance.now()
    const { cloud_token, watch } = await waiting
    assert.ok(performance.now() - begin_ms < 3_000, 'The wake-up came, not the look after four seconds.')
    assert.ok(cloud_token !== undefined && watch.index !== pending.watch.index)
    const cloud = createClient({ url: platform.api_url, token: cloud_token })
    assert.deepEqual(await cloud.call(inspectAuth, {}), { agent: { game_cloud: { game_id } }, client_ip: '127.0.0.1' })
    await cloud.call(getGameById, { params: { game_id } })
    // An answer that was lost is answered again, the same.
    assert.deepEqual(await get(device_link_token, pending.watch.index), { cloud_token, watch })
    assert.deepEqual(await get(device_link_token, watch.index), { cloud_token, watch })
    assert.equal(platform.ctx.keys.verify(cloud_token, platform.ctx.now()).token_id, device_link_id)
  })

  await t.test('a link is completed once', async () => {
    const { device_link_token } = await anyone.call(prepareDeviceLink, {})
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => complete(developer, device_link_token)))
    assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 1)
    const error = await refused('CLOUD_DEVICE_LINK_ALREADY_COMPLETE', complete(developer, device_link_token))
    assert.equal(error.status, 409)
  })

  await t.test('only who may develop the game completes a link to it; the link stays open', async () => {
    const { device_link_token } = await anyone.call(prepareDeviceLink, {})
    const viewer = await member('viewer@example.com', 'viewer')
    const stranger = await logIn(platform, mail, 'stranger@example.com')
    await refused('GROUP_INSUFFICIENT_PERMISSIONS', complete(viewer, device_link_token))
    await refused('GAME_NOT_FOUND', complete(stranger, device_link_token))
    await refused('GAME_NOT_FOUND', complete(developer, device_link_token, UNKNOWN_ID))
    assert.equal((await get(device_link_token)).cloud_token, undefined)
    await platform.client.call(completeDeviceLink, { body: { device_link_token, game_id } })
    assert.notEqual((await get(device_link_token)).cloud_token, undefined)
  })

  await t.test('a refused link is not valid, and its address is no referrer', async () => {
    const { device_link_token, device_link_url } = await anyone.call(prepareDeviceLink, {})
    const { pathname, host } = new URL(device_link_url)
    const page = await ask(`${platform.api_url}${pathname}`, { headers: { host } })
    assert.equal(page.status, 200)
    assert.equal(page.headers['referrer-policy'], 'no-referrer')
    assert.equal(page.headers['cache-control'], 'no-store')
    await developer.client.call(refuseDeviceLink, { body: { device_link_token } })
    await refused('CLOUD_DEVICE_LINK_INVALID', get(device_link_token))
    await refused('CLOUD_DEVICE_LINK_INVALID', complete(developer, device_link_token))
  })

  await t.test('a link that is complete is not refused any more', async () => {
    const { device_link_token } = await anyone.call(prepareDeviceLink, {})
    await complete(developer, device_link_token)
    const refuse = developer.client.call(refuseDeviceLink, { body: { device_link_token } })
    await refused('CLOUD_DEVICE_LINK_ALREADY_COMPLETE', refuse)
    assert.notEqual((await get(device_link_token)).cloud_token, undefined)
  })

  await t.test('what is no link, or has expired, is refused, and the token of a link opens nothing else', async () => {
    const { device_link_token } = await anyone.call(prepareDeviceLink, {})
    const as_caller = createClient({ url: platform.api_url, token: device_link_token })
    await refused('API_FORBIDDEN', as_caller.call(inspectAuth, {}))
    for (const wrong of ['nonsense', `${device_link_token}x`, game.cloud_token, developer.token]) {
      await refused('CLOUD_DEVICE_LINK_INVALID', get(wrong))
      await refused('CLOUD_DEVICE_LINK_INVALID', complete(developer, wrong))
    }
    // Of an hour, and the user token is good for a quarter of one.
    platform.advance(60 * 60_000)
    await refused('CLOUD_DEVICE_LINK_INVALID', get(device_link_token))
  })

  await t.test('a platform that stops answers who waits', async () => {
    const { device_link_token } = await anyone.call(prepareDeviceLink, {})
    const waiting = get(device_link_token, 'pending')
    // Behind it on its way: when this is answered, the other one has come in.
    await get(device_link_token)
    await platform.close()
    assert.deepEqual(await waiting, { watch: { index: 'pending' } })
  })
})
