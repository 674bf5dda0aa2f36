// Sign-in with OpenID Connect, against a real provider on loopback: what a browser, the provider and the platform say to each
// other, and what the platform refuses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addPasskey,
  type BodyOf,
  checkSignInIssuer,
  completeConfirmation,
  completePasskeySignIn,
  completeProviderSignIn,
  createSignInLink,
  deleteSignInProvider,
  getBootstrap,
  getGroupMembers,
  getSelfProfile,
  listAuditEvents,
  listGroupAuditEvents,
  listOpenSignInProviders,
  listSessions,
  listSignInProviders,
  type Operation,
  putSignInProvider,
  removePasskey,
  startConfirmation,
  startEmailVerification,
  startPasskey,
  startPasskeySignIn,
  startProviderSignIn,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { mainUrl } from '../../src/config/addresses.ts'
import { newId } from '../../src/ids.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { Authenticator } from './authenticator.ts'
import { Browser, CLIENT_ID, CLIENT_SECRET, type OidcAccount, type OidcServer, startOidcServer } from './oidc-server.ts'
import { hub, refresh } from './people.ts'

const NAME = 'studio'
const MINUTE_MS = 60_000
/** Until keys are read again because of an unknown one. */
const KEYS_PAUSE_MS = 30_000
const ADA: OidcAccount = { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['arena-dev'] }

type Put = BodyOf<typeof putSignInProvider>
type Reply = { status: number; body: Record<string, unknown>; cookies: Map<string, string> }
type Person = { client: Client; cookie: string; user_id: string; browser: Browser }

let platform: Platform
let oidc: OidcServer
let game: TestGame

const hub_url = (): string => mainUrl(platform.ctx.config)

/** As the hub calls: with its Origin, and the cookies of the browser. */
async function ask(
  operation: Operation,
  body: object,
  cookies: ReadonlyMap<string, string> = new Map(),
): Promise<Reply> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(`${platform.api_url}${operation.path.replace('{provider_name}', NAME)}`, {
    method: operation.method,
    headers: { 'content-type': 'application/json', ...hub(platform, cookie) },
    body: JSON.stringify(body),
  })
  const set = response.headers.getSetCookie().map((line): [string, string] => {
    const [pair = ''] = line.split(';', 1)
    const at = pair.indexOf('=')
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown>, cookies: new Map(set) }
}

const providerOf = (rest: Partial<Put> = {}): Put => ({
  ...{ title: 'Example Studio', issuer: oidc.issuer, client_id: CLIENT_ID, client_secret: CLIENT_SECRET },
  ...{ scopes: ['openid', 'profile', 'email', 'groups'], groups_claim: 'groups', admin_values: ['operators'] },
  rules: [
    { value: 'arena', group_id: game.group_id, role: 'viewer' },
    { value: 'arena-dev', group_id: game.group_id, role: 'developer' },
  ],
  ...rest,
})
const put = (rest: Partial<Put> = {}) =>
  platform.client.call(putSignInProvider, { params: { provider_name: NAME }, body: providerOf(rest) })

/** Begins a sign-in. `url`: where the browser goes. */
async function begin(): Promise<{ url: URL; cookies: Map<string, string> }> {
  const { status, body, cookies } = await ask(startProviderSignIn, { to: '/account' })
  assert.equal(status, 200, JSON.stringify(body))
  return { url: new URL(String(body.url)), cookies }
}

const bodyOf = (returned: URL): object => Object.fromEntries(returned.searchParams)

/** Goes to the provider and back. `change`: of the address at the provider, or of the one that it leads back to. */
async function goThrough(
  subject: string,
  { change, browser = new Browser() }: { change?: (url: URL) => void; browser?: Browser } = {},
): Promise<Reply> {
  oidc.person = subject
  const { url, cookies } = await begin()
  change?.(url)
  const returned = await browser.visit(url.href, hub_url())
  assert.equal(returned.pathname, `/sign-in/${NAME}`)
  return ask(completeProviderSignIn, bodyOf(returned), cookies)
}

async function signIn(subject: string): Promise<Person> {
  const browser = new Browser()
  const { status, body, cookies } = await goThrough(subject, { browser })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body, { to: '/account' })
  assert.equal(cookies.get('muster_sign_in'), '', 'the cookie of the flow is removed')
  const refreshed = await refresh(platform, `muster_session=${cookies.get('muster_session')}`)
  assert.equal(refreshed.status, 200, JSON.stringify(refreshed.body))
  return {
    client: createClient({ url: platform.api_url, token: String(refreshed.body.token) }),
    cookie: refreshed.cookie ?? '',
    user_id: String(refreshed.body.identity_id),
    browser,
  }
}

function failed({ status, body }: Reply, reason: string, message: RegExp): void {
  assert.deepEqual([status, body.code, (body.metadata as { reason?: string }).reason], [400, 'SIGN_IN_FAILED', reason])
  assert.match(String(body.message), message)
}

async function roleOf(user_id: string): Promise<string | undefined> {
  const { members } = await platform.client.call(getGroupMembers, { params: { group_id: game.group_id }, query: {} })
  return members.find(({ identity }) => identity.identity_id === user_id)?.role
}

test('people sign in with a provider of OpenID Connect', async (t) => {
  platform = await startPlatform(t, {
    env: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8', MUSTER_LOGIN_EMAIL: 'off' },
  })
  game = await platform.game()
  oidc = await startOidcServer(t, () => ({
    redirect: `${hub_url()}/sign-in/${NAME}`,
    sign_out: `${hub_url()}/sign-in`,
    backchannel: `${platform.api_url}/auth/backchannel-logout/${NAME}`,
  }))
  oidc.accounts.set('ada', ADA)
  await t.test('an administrator checks an issuer, and sets a provider whose secret no operation returns', setProvider)
  await t.test('a person signs in, and gets the role of a group of the provider', getRole)
  await t.test('a passkey of a person of a provider confirms, and does not sign in', confirmOnly)
  await t.test('with MUSTER_LOGIN_EMAIL=off no code is sent, and the sign-in page offers none', refuseCodes)
  await t.test('the role follows the groups at each sign-in, and leaves with them', followGroups)
  await t.test('a membership that a person made stays', keepMembership)
  await t.test('a value of the claim makes an administrator, for the session', makeAdministrator)
  await t.test('only people with a value sign in where the provider requires one', requireValue)
  await t.test('a verified address links a user only where the operator allows it', linkByEmail)
  await t.test('a state of another browser, a changed one and a used one are refused', refuseStates)
  await t.test('an answer of another issuer is refused', refuseIssuer)
  await t.test('a token with another nonce is refused', refuseNonce)
  await t.test('a token that has expired is refused, and the clock is named', refuseExpired)
  await t.test('a clock five minutes behind is refused, and one five minutes ahead is not', compareClocks)
  await t.test('a person signs in after a rotation of the keys, and unknown keys are read once in a while', rotateKeys)
  await t.test('a person who declines reads so, and a wrong secret is named', explainRefusals)
  await t.test('a sign-out leads to the provider, which ends the other sessions of the person', signOut)
  await t.test('a session ends when the provider says, and no refresh extends it', endByTime)
  await t.test('a logout token that is none ends nothing', refuseLogoutTokens)
  await t.test('a provider that is removed ends its sessions', removeProvider)
})

async function setProvider(): Promise<void> {
  const { client } = platform
  const checked = await client.call(checkSignInIssuer, { body: { issuer: oidc.issuer } })
  assert.deepEqual(
    [checked.is_ok, checked.problem, checked.key_count, checked.has_sign_out, checked.has_backchannel_logout],
    [true, undefined, 1, true, true],
  )
  const wrong = await client.call(checkSignInIssuer, { body: { issuer: `${oidc.issuer}/elsewhere` } })
  assert.equal(wrong.is_ok, false)
  assert.match(wrong.problem ?? '', /issuer/)

  const { provider } = await put()
  assert.equal(provider.redirect_url, `${hub_url()}/sign-in/${NAME}`)
  const { providers } = await client.call(listSignInProviders, {})
  assert.deepEqual(providers, [provider])
  assert.ok(provider.has_secret)
  assert.ok(!JSON.stringify(providers).includes(CLIENT_SECRET))
  const open = await createClient({ url: platform.api_url }).call(listOpenSignInProviders, {})
  assert.deepEqual(open.providers, [{ name: NAME, title: 'Example Studio' }])

  // The secret stays for the same client, and does not go to another one.
  const kept = await put({ client_secret: undefined, title: 'Studio' })
  assert.equal(kept.provider.has_secret, true)
  const moved = await put({ client_secret: undefined, client_id: 'other' })
  assert.equal(moved.provider.has_secret, false)
  await put()
  const refused = await failureOf(put({ groups_claim: undefined }))
  assert.match(refused.message, /groups_claim/)
}

async function confirmOnly(): Promise<void> {
  const ada = await signIn('ada')
  const device = new Authenticator(hub_url())
  const adding = await ada.client.call(startPasskey, {})
  const made = { state: adding.state, name: 'Laptop', credential: device.create(adding.options) }
  const { passkey } = await ada.client.call(addPasskey, { body: made })
  assert.equal(passkey.signs_in, false)
  const begun = await createClient({ url: platform.api_url }).call(startPasskeySignIn, { body: {} })
  const used = { state: begun.state, credential: device.get(begun.options) }
  const { status, body } = await ask(completePasskeySignIn, used)
  assert.deepEqual([status, (body.metadata as { reason?: string }).reason], [400, 'not_for_sign_in'])
  assert.match(String(body.message), /Sign in with the provider/)
  const asking = await ada.client.call(startConfirmation, {})
  const confirmed = { state: asking.state, credential: device.get(asking.options) }
  await ada.client.call(completeConfirmation, { body: confirmed })
  await ada.client.call(removePasskey, { params: { passkey_id: passkey.passkey_id } })
}

async function getRole(): Promise<void> {
  const ada = await signIn('ada')
  const { identity } = await ada.client.call(getSelfProfile, { query: {} })
  assert.equal(identity.display_name, 'Ada Lovelace')
  assert.equal(identity.is_admin, false)
  assert.deepEqual(identity.linked_accounts, [
    { provider: { issuer: oidc.issuer, title: 'Example Studio', email: 'ada@example.com' } },
  ])
  assert.equal(await roleOf(ada.user_id), 'developer')
  assert.equal((await signIn('ada')).user_id, ada.user_id)
  const of_group = await platform.client.call(listGroupAuditEvents, { params: { group_id: game.group_id }, query: {} })
  assert.equal(of_group.events.filter(({ operation }) => operation === 'groups.setMemberRole').length, 1)
  const { events } = await platform.client.call(listAuditEvents, { query: {} })
  const of = (operation: string) => events.filter((event) => event.operation === operation)
  assert.equal(of(completeProviderSignIn.id).length, 2)
  assert.ok(
    of(completeProviderSignIn.id).some(({ changes }) => changes.some(({ member }) => member === 'created_user_id')),
  )
}

async function refuseCodes(): Promise<void> {
  const anyone = createClient({ url: platform.api_url })
  assert.deepEqual((await anyone.call(getBootstrap, {})).login_methods, { access_token: true, email: false })
  const refusal = await failureOf(anyone.call(startEmailVerification, { body: { email: ADA.email } }))
  assert.equal(refusal.code, 'API_FORBIDDEN')
  assert.match(refusal.message, /MUSTER_LOGIN_EMAIL/)
  assert.deepEqual(await platform.ctx.db.selectFrom('email_verifications').selectAll().execute(), [])
}

async function followGroups(): Promise<void> {
  const roles: (string | undefined)[] = []
  for (const groups of [['arena'], ['arena', 'arena-dev'], [], ['arena']]) {
    oidc.accounts.set('ada', { ...ADA, groups })
    roles.push(await roleOf((await signIn('ada')).user_id))
  }
  assert.deepEqual(roles, ['viewer', 'developer', undefined, 'viewer'])
  oidc.accounts.set('ada', ADA)
}

async function keepMembership(): Promise<void> {
  oidc.accounts.set('bea', { ...ADA, name: 'Bea', email: 'bea@example.com', groups: [] })
  const { user_id } = await signIn('bea')
  await platform.ctx.db
    .insertInto('group_members')
    .values({ group_id: game.group_id, user_id, role: 'viewer', join_ts: new Date() })
    .execute()
  for (const groups of [['arena-dev'], []]) {
    oidc.accounts.set('bea', { ...ADA, name: 'Bea', email: 'bea@example.com', groups })
    await signIn('bea')
    assert.equal(await roleOf(user_id), 'viewer')
  }
}

async function makeAdministrator(): Promise<void> {
  oidc.accounts.set('olga', { ...ADA, name: 'Olga', email: 'olga@example.com', groups: ['operators'] })
  const olga = await signIn('olga')
  await olga.client.call(listSignInProviders, {})
  // A link would make an administrator that the provider does not know.
  assert.equal((await failureOf(olga.client.call(createSignInLink, {}))).code, 'API_FORBIDDEN')
  oidc.accounts.set('olga', { ...ADA, name: 'Olga', email: 'olga@example.com', groups: [] })
  const later = await signIn('olga')
  assert.equal((await failureOf(later.client.call(listSignInProviders, {}))).code, 'API_FORBIDDEN')
  // A value that is taken away ends the sessions of its administrators.
  await put({ admin_values: [] })
  assert.equal((await failureOf(olga.client.call(listSignInProviders, {}))).code, 'TOKEN_REVOKED')
  await put()
}

async function requireValue(): Promise<void> {
  await put({ requires_value: true })
  failed(await goThrough('olga'), 'not_allowed', /no group \(groups\).*Ask an administrator/)
  await put()
}

async function linkByEmail(): Promise<void> {
  const { db, now } = platform.ctx
  const user_id = newId(now())
  await db
    .insertInto('users')
    .values({ user_id, email: 'cid@example.com', display_name: 'Cid', create_ts: new Date(now()) })
    .execute()
  const cid = { ...ADA, name: 'Cid', email: 'Cid@example.com', groups: [] }
  oidc.accounts.set('cid-1', cid)
  assert.notEqual((await signIn('cid-1')).user_id, user_id)
  await put({ links_by_email: true })
  oidc.accounts.set('cid-2', { ...cid, email_verified: false })
  assert.notEqual((await signIn('cid-2')).user_id, user_id)
  oidc.accounts.set('cid-3', cid)
  assert.equal((await signIn('cid-3')).user_id, user_id)
  // A second account with the address, as after a company gave it to another person.
  oidc.accounts.set('cid-4', cid)
  assert.notEqual((await signIn('cid-4')).user_id, user_id)
  await put()
}

async function refuseStates(): Promise<void> {
  oidc.person = 'ada'
  const { url, cookies } = await begin()
  const returned = await new Browser().visit(url.href, hub_url())
  failed(await ask(completeProviderSignIn, bodyOf(returned)), 'browser', /did not begin in this browser/)
  const other = await begin()
  failed(await ask(completeProviderSignIn, bodyOf(returned), other.cookies), 'state', /does not belong/)
  const forged = { ...bodyOf(returned), state: 'A'.repeat(43) }
  failed(await ask(completeProviderSignIn, forged, cookies), 'state', /does not belong/)
  assert.equal((await ask(completeProviderSignIn, bodyOf(returned), cookies)).status, 200)
  failed(await ask(completeProviderSignIn, bodyOf(returned), cookies), 'state', /used before/)
  const late = await begin()
  const late_return = await new Browser().visit(late.url.href, hub_url())
  platform.stepWallClock(11 * MINUTE_MS)
  failed(await ask(completeProviderSignIn, bodyOf(late_return), late.cookies), 'browser', /ten minutes/)
  platform.stepWallClock(-11 * MINUTE_MS)
}

async function refuseIssuer(): Promise<void> {
  oidc.person = 'ada'
  const { url, cookies } = await begin()
  const returned = await new Browser().visit(url.href, hub_url())
  assert.equal(returned.searchParams.get('iss'), oidc.issuer)
  const body = { ...bodyOf(returned), iss: 'https://evil.example.com' }
  failed(await ask(completeProviderSignIn, body, cookies), 'provider', /issuer/)
}

async function refuseNonce(): Promise<void> {
  const change = (url: URL) => url.searchParams.set('nonce', 'A'.repeat(43))
  failed(await goThrough('ada', { change }), 'token', /not for this sign-in \(nonce\)/)
}

async function refuseExpired(): Promise<void> {
  oidc.id_token_ttl_s = 60
  platform.stepWallClock(3 * MINUTE_MS)
  failed(await goThrough('ada'), 'clock', /expired.*NTP/)
  platform.stepWallClock(-3 * MINUTE_MS)
  oidc.id_token_ttl_s = 3_600
}

async function compareClocks(): Promise<void> {
  platform.stepWallClock(-5 * MINUTE_MS)
  failed(await goThrough('ada'), 'clock', /NTP/)
  platform.stepWallClock(10 * MINUTE_MS)
  assert.equal((await goThrough('ada')).status, 200)
  platform.stepWallClock(-5 * MINUTE_MS)
}

async function rotateKeys(): Promise<void> {
  await signIn('ada')
  oidc.rotate()
  const reads = () => oidc.requests.filter((path) => path === '/jwks').length
  const before = reads()
  await signIn('ada')
  assert.equal(reads(), before + 1)
  // A second rotation at once waits for the pause: a flood of tokens with unknown keys costs the provider nothing.
  oidc.rotate()
  failed(await goThrough('ada'), 'token', /does not publish.*Try again/)
  failed(await goThrough('ada'), 'token', /does not publish/)
  assert.equal(reads(), before + 1)
  platform.advance(KEYS_PAUSE_MS)
  await signIn('ada')
  assert.equal(reads(), before + 2)
}

async function explainRefusals(): Promise<void> {
  const { url, cookies } = await begin()
  const state = url.searchParams.get('state') ?? ''
  const declined = { state, error: 'access_denied', iss: oidc.issuer }
  failed(await ask(completeProviderSignIn, declined, cookies), 'denied', /cancelled/)
  await put({ client_secret: 'wrong' })
  failed(await goThrough('ada'), 'provider', /client secret is wrong/)
  await put()
}

async function signOut(): Promise<void> {
  const ada = await signIn('ada')
  const { status, body } = await refresh(platform, ada.cookie, { logout: true })
  assert.equal(status, 200)
  const url = new URL(String(body.end_session_url))
  assert.equal(url.searchParams.get('post_logout_redirect_uri'), `${hub_url()}/sign-in`)
  assert.equal((await failureOf(ada.client.call(listSessions, {}))).code, 'TOKEN_REVOKED')

  // The person signs out at the provider alone.
  const again = await signIn('ada')
  assert.equal((await again.client.call(listSessions, {})).sessions.filter(({ is_current }) => is_current).length, 1)
  const back = await again.browser.signOut(url.href)
  assert.ok(back.startsWith(`${hub_url()}/sign-in`), back)
  assert.deepEqual(oidc.faults, [])
  await until('the session ends', () =>
    again.client.call(listSessions, {}).then(
      () => false,
      (error: { code?: string }) => error.code === 'TOKEN_REVOKED',
    ),
  )
}

async function endByTime(): Promise<void> {
  await put({ session_hours: 1 })
  const ada = await signIn('ada')
  platform.stepWallClock(50 * MINUTE_MS)
  const refreshed = await refresh(platform, ada.cookie)
  assert.equal(refreshed.status, 200)
  platform.stepWallClock(11 * MINUTE_MS)
  assert.equal((await refresh(platform, refreshed.cookie)).status, 401)
  platform.stepWallClock(-61 * MINUTE_MS)
  await put()
}

async function refuseLogoutTokens(): Promise<void> {
  const ada = await signIn('ada')
  const send = (form: Record<string, string>, name = NAME) =>
    fetch(`${platform.api_url}/auth/backchannel-logout/${name}`, { method: 'POST', body: new URLSearchParams(form) })
  for (const logout_token of ['', 'a.b.c', unsigned(ada.user_id)]) {
    const response = await send({ logout_token })
    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as { error: string }).error, 'invalid_request')
  }
  assert.equal((await send({})).status, 400)
  assert.equal((await send({ logout_token: 'a.b.c' }, 'unknown')).status, 400)
  assert.equal((await refresh(platform, ada.cookie)).status, 200)
}

/** What a stranger could send. */
function unsigned(sub: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const iat = Math.floor(Date.now() / 1_000)
  return `${part({ alg: 'none' })}.${part({ iss: oidc.issuer, aud: CLIENT_ID, sub, iat, jti: 'a', events })}.`
}

async function removeProvider(): Promise<void> {
  const ada = await signIn('ada')
  const { ended_count } = await platform.client.call(deleteSignInProvider, { params: { provider_name: NAME } })
  assert.ok(ended_count >= 1)
  assert.equal((await refresh(platform, ada.cookie)).status, 401)
  assert.equal((await ask(startProviderSignIn, {})).body.code, 'SIGN_IN_PROVIDER_NOT_FOUND')
  assert.equal(await roleOf(ada.user_id), 'developer')
  // The account is the same user when the provider comes back.
  await put()
  assert.equal((await signIn('ada')).user_id, ada.user_id)
}
