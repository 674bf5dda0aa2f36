// The sessions of a person, links that sign in once, and what a device link shows to the person who confirms it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  completeDeviceLink,
  completeLinkVerification,
  createGroup,
  createSignInLink,
  endOtherSessions,
  endSession,
  inspectAuth,
  inspectDeviceLink,
  listSessions,
  prepareDeviceLink,
  revokeToken,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { personOf } from '../http/world.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { startMailServer } from './mail-server.ts'
import { hub, logIn, refresh, say } from './people.ts'

const HOUR_MS = 3_600_000

/** Signs in with a link as a browser does; the cookie of the session, null when refused. */
async function signIn(platform: Platform, link: string, user_agent = 'test-browser') {
  return say(platform, completeLinkVerification, { link }, { ...hub(platform), 'user-agent': user_agent })
}

async function newLink({ client }: Platform): Promise<string> {
  const { url } = await client.call(createSignInLink, {})
  assert.match(url, /\/sign-in\?link=[\w-]{43}$/)
  return new URL(url).searchParams.get('link')!
}

test('a person sees the own sessions, and ends one of them or all others, which are refused at once', async (t) => {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_MAIL_FROM: 'm@example.com' } })
  const sessions = []
  for (let count = 0; count < 3; count++) sessions.push(await logIn(platform, mail, 'ada@example.com'))
  const stranger = await logIn(platform, mail, 'eve@example.com')
  const [first, second, third] = sessions
  const listed = (await first!.client.call(listSessions, {})).sessions
  assert.equal(listed.length, 3)
  assert.deepEqual(
    listed.filter(({ is_current }) => is_current).map(({ session_id }) => session_id),
    [sessionOf(platform, first!.token)],
  )
  assert.ok(listed.every(({ client_ip, expire_ts, create_ts }) => client_ip === '127.0.0.1' && create_ts < expire_ts))

  const params = { session_id: sessionOf(platform, second!.token) }
  assert.equal((await failureOf(stranger.client.call(endSession, { params }))).code, 'SESSION_NOT_FOUND')
  await first!.client.call(endSession, { params })
  assert.equal((await failureOf(second!.client.call(listSessions, {}))).code, 'TOKEN_REVOKED')
  assert.equal((await refresh(platform, second!.cookie)).status, 401)
  assert.equal((await failureOf(first!.client.call(endSession, { params }))).code, 'SESSION_NOT_FOUND')

  assert.deepEqual(await first!.client.call(endOtherSessions, {}), { ended_count: 1 })
  assert.equal((await failureOf(third!.client.call(listSessions, {}))).code, 'TOKEN_REVOKED')
  assert.equal((await first!.client.call(listSessions, {})).sessions.length, 1)
  assert.equal((await stranger.client.call(listSessions, {})).sessions.length, 1, 'of another person, none ends')
  assert.deepEqual(await platform.client.call(listSessions, {}), { sessions: [] }, 'an access token has no session')
})

test('a sign-in link opens one session of the administrator, and is refused after that', async (t) => {
  const platform = await startPlatform(t)
  const link = await newLink(platform)
  const { rows } = await platform.ctx.pool.query<{ text: string }>(
    'select row_to_json(s)::text as text from sign_in_links s',
  )
  assert.equal(rows.length, 1)
  assert.equal(rows[0]!.text.includes(link), false, 'the database has a hash only')
  const both = await Promise.all([signIn(platform, link), signIn(platform, link)])
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 401])
  const { cookie } = both.find(({ status }) => status === 200)!
  const { body } = await refresh(platform, cookie)
  const admin = createClient({ url: platform.api_url, token: body.token as string })
  assert.equal((await admin.call(inspectAuth, {})).agent.access_token?.name, 'test')
  const [session] = (await admin.call(listSessions, {})).sessions
  assert.deepEqual([session!.is_current, session!.client_ip], [true, '127.0.0.1'])
  const again = await signIn(platform, link)
  assert.deepEqual([again.status, again.body.code], [401, 'SIGN_IN_LINK_INVALID'])
  assert.equal((await signIn(platform, 'unknown')).status, 401)
})

test('a sign-in link ends after an hour, and with the access token of its maker; only administrators make one', async (t) => {
  const platform = await startPlatform(t)
  const { client, ctx } = platform
  const old = await newLink(platform)
  platform.advance(HOUR_MS)
  assert.equal((await signIn(platform, old)).status, 401)
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Developers' } })
  const owner = platform.as(await personOf(platform, group_id, 'owner'))
  assert.equal((await failureOf(owner.call(createSignInLink, {}))).code, 'API_FORBIDDEN')

  const link = await newLink(platform)
  const { token_id } = ctx.keys.verify(platform.token, ctx.now())
  await client.call(revokeToken, { params: { token_id } })
  await until('the revocation is known', () => ctx.revoked.has(token_id))
  assert.equal((await signIn(platform, link)).status, 401)
})

test('a device link shows who asks, from where and what it will be allowed', async (t) => {
  const platform = await startPlatform(t)
  const anyone = createClient({ url: platform.api_url })
  const game = await platform.game()
  const viewer = platform.as(await personOf(platform, game.group_id, 'viewer'))
  const prepared = await anyone.call(prepareDeviceLink, { body: { name: 'ada-laptop' } })
  const query = { device_link_token: prepared.device_link_token }
  const { create_ts, expire_ts, grant, ...shown } = await viewer.call(inspectDeviceLink, { query })
  assert.deepEqual(shown, {
    device_link_id: prepared.device_link_id,
    code: prepared.device_link_id.slice(-8),
    name: 'ada-laptop',
    client_ip: '127.0.0.1',
    is_complete: false,
  })
  assert.equal(Date.parse(expire_ts) - Date.parse(create_ts), HOUR_MS)
  assert.ok(grant.kind === 'cloud_token' && grant.lifetime_ms > HOUR_MS)
  const body = { device_link_token: prepared.device_link_token, game_id: game.game_id }
  await platform.client.call(completeDeviceLink, { body })
  assert.equal((await viewer.call(inspectDeviceLink, { query })).is_complete, true)

  const nameless = await anyone.call(prepareDeviceLink, {})
  const other = { device_link_token: nameless.device_link_token }
  assert.equal((await viewer.call(inspectDeviceLink, { query: other })).name, undefined)
  platform.advance(HOUR_MS)
  const late = failureOf(platform.client.call(inspectDeviceLink, { query: other }))
  assert.equal((await late).code, 'CLOUD_DEVICE_LINK_INVALID')
  assert.equal((await failureOf(anyone.call(inspectDeviceLink, { query }))).code, 'API_UNAUTHORIZED')
})

function sessionOf({ ctx }: Platform, token: string): string {
  const verified = ctx.keys.verify(token, ctx.now())
  assert.ok(verified.kind === 'user')
  return verified.session_id
}
