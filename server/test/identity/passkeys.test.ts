// Passkeys, with an authenticator in software: they sign in and confirm, and every response that is wrong in one place is
// refused. And the second confirmation: who is asked for it, and for how long it holds.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import {
  addPasskey,
  completeConfirmation,
  completeLinkVerification,
  completePasskeySignIn,
  createCloudToken,
  createGame,
  createGroup,
  createSignInLink,
  deleteGame,
  type ErrorBody,
  getBootstrap,
  listAuditEvents,
  listPasskeys,
  listSessions,
  type Operation,
  PASSKEYS_MAX,
  removePasskey,
  removePasskeysOf,
  renamePasskey,
  revokeGameCloudToken,
  revokeToken,
  startConfirmation,
  startPasskey,
  startPasskeySignIn,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { OPERATIONS } from '@musterhost/contract/operations'
import { mainUrl } from '../../src/config/addresses.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { Authenticator, type Wrong } from './authenticator.ts'
import { type MailServer, startMailServer } from './mail-server.ts'
import { hub, logIn, type Person, refresh, say } from './people.ts'

const MINUTE_MS = 60_000

/** What the contract flags, and nothing else. A new operation that destroys joins this list in the contract. */
const CONFIRMED = [
  'admin.removePasskeys',
  'admin.revokeToken',
  'auth.passkeys.remove',
  'auth.passkeys.start',
  'games.deleteGame',
  'games.namespaces.deleteGameNamespace',
  'games.namespaces.revokeGameNamespaceTokenDevelopment',
  'games.namespaces.revokeGameNamespaceTokenPublic',
  'games.playerData.erasePlayerData',
  'games.tokens.revokeCloudToken',
  'groups.delete',
  'groups.transferOwnership',
  'nodes.remove',
  'signInProviders.delete',
  'signInProviders.put',
]

type Scene = { platform: Platform; mail: MailServer }

const originOf = (platform: Platform): string => mainUrl(platform.ctx.config)

async function open(t: TestContext): Promise<Scene> {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    env: { MUSTER_SMTP_URL: mail.url, MUSTER_MAIL_FROM: 'm@example.com', MUSTER_ACCESS: 'public' },
  })
  return { platform, mail }
}

async function add(client: Client, device: Authenticator, name = 'Laptop') {
  const { state, options } = await client.call(startPasskey, {})
  const { passkey } = await client.call(addPasskey, { body: { state, name, credential: device.create(options) } })
  return passkey
}

async function confirm(client: Client, device: Authenticator, wrong: Wrong = {}) {
  const { state, options } = await client.call(startConfirmation, {})
  return client.call(completeConfirmation, { body: { state, credential: device.get(options, wrong) } })
}

async function signIn(platform: Platform, device: Authenticator, wrong: Wrong = {}) {
  const { state, options } = await createClient({ url: platform.api_url }).call(startPasskeySignIn, { body: {} })
  assert.deepEqual(options.allowCredentials, [], 'nobody learns which passkeys there are')
  return complete(platform, { state, credential: device.get(options, wrong) })
}

function complete(platform: Platform, body: object) {
  return say(platform, completePasskeySignIn, body, hub(platform))
}

async function clientOf(platform: Platform, cookie: string | null): Promise<Client> {
  const { status, body } = await refresh(platform, cookie)
  assert.equal(status, 200, JSON.stringify(body))
  return createClient({ url: platform.api_url, token: String(body.token) })
}

function refused({ status, body }: { status: number; body: object }, reason: string, message: RegExp): void {
  const { code, metadata, message: said } = body as ErrorBody & { metadata?: { reason?: string } }
  assert.deepEqual([status, code, metadata?.reason], [400, 'PASSKEY_REFUSED', reason], said)
  assert.match(said, message)
}

async function newGame(owner: Person): Promise<string> {
  const { group_id } = await owner.client.call(createGroup, { body: { display_name: 'Studio' } })
  const body = { name_id: `g-${group_id.slice(-8)}`, display_name: 'Arena', developer_group_id: group_id }
  const { game_id } = await owner.client.call(createGame, { body })
  return game_id
}

test('a person adds a passkey, signs in with it alone, sees how, renames and removes it', async (t) => {
  const { platform, mail } = await open(t)
  const device = new Authenticator(originOf(platform))
  const ada = await logIn(platform, mail, 'ada@example.com')
  const passkey = await add(ada.client, device)
  assert.deepEqual([passkey.name, passkey.signs_in, passkey.use_ts], ['Laptop', true, undefined])

  const { status, body, cookie } = await signIn(platform, device)
  assert.equal(status, 200, JSON.stringify(body))
  const session = await clientOf(platform, cookie)
  const { sessions } = await session.call(listSessions, {})
  assert.deepEqual(
    sessions.map(({ is_current, passkey_name }) => [is_current, passkey_name]),
    [
      [true, 'Laptop'],
      [false, undefined],
    ],
  )
  const { passkeys } = await session.call(listPasskeys, {})
  assert.equal(passkeys.length, 1)
  assert.ok(passkeys[0]!.use_ts !== undefined)

  const params = { passkey_id: passkey.passkey_id }
  await session.call(renamePasskey, { params, body: { name: 'Key ring' } })
  const eve = await logIn(platform, mail, 'eve@example.com')
  const renamed = await failureOf(eve.client.call(renamePasskey, { params, body: { name: 'mine' } }))
  const removed = await failureOf(eve.client.call(removePasskey, { params }))
  assert.deepEqual([renamed.code, removed.code], ['PASSKEY_NOT_FOUND', 'PASSKEY_NOT_FOUND'])
  // The first session has not confirmed; the one that the passkey opened has.
  assert.equal((await failureOf(ada.client.call(removePasskey, { params }))).code, 'CONFIRMATION_REQUIRED')
  await confirm(ada.client, device)
  assert.deepEqual(await ada.client.call(removePasskey, { params }), { ended_count: 1 })
  assert.equal((await failureOf(session.call(listSessions, {}))).code, 'TOKEN_REVOKED')
  refused(await signIn(platform, device), 'unknown', /does not know the passkey/)

  const { events } = await platform.client.call(listAuditEvents, { query: { actor_id: ada.user_id } })
  const done = events.filter(({ outcome }) => outcome === 'done').map(({ operation }) => operation)
  for (const operation of [
    'auth.passkeys.add',
    'auth.identity.passkey.complete',
    'auth.passkeys.rename',
    'auth.confirmation.complete',
    'auth.passkeys.remove',
  ]) {
    assert.ok(done.includes(operation), `${operation} is in the audit log: ${done.join(', ')}`)
  }
})

test('a response that is replayed, late, or wrong in one place does not sign in', async (t) => {
  const { platform, mail } = await open(t)
  const device = new Authenticator(originOf(platform))
  const ada = await logIn(platform, mail, 'ada@example.com')
  await add(ada.client, device)
  const anyone = createClient({ url: platform.api_url })

  const first = await anyone.call(startPasskeySignIn, { body: {} })
  const response = { state: first.state, credential: device.get(first.options) }
  assert.equal((await complete(platform, response)).status, 200)
  refused(await complete(platform, response), 'used', /used before/)
  const second = await anyone.call(startPasskeySignIn, { body: {} })
  refused(await complete(platform, { ...response, state: second.state }), 'response', /challenge/)

  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const cases: [string, Wrong, RegExp][] = [
    ['another page', { origin: 'https://hub.example.net' }, /origin/],
    ['another host', { rp_id: 'example.net' }, /RP ID/],
    ['a person who was not verified', { is_verified: false }, /could not be verified/],
    ['another key', { key: other }, /signature/],
  ]
  for (const [, wrong, message] of cases) refused(await signIn(platform, device, wrong), 'response', message)
  const eve = Buffer.alloc(16, 7).toString('base64url')
  refused(await signIn(platform, device, { user_handle: eve }), 'unknown', /another person/)

  const late = await anyone.call(startPasskeySignIn, { body: {} })
  const late_response = { state: late.state, credential: device.get(late.options) }
  platform.advance(5 * MINUTE_MS)
  refused(await complete(platform, late_response), 'expired', /five minutes/)
  refused(await complete(platform, { ...late_response, state: 'forged' }), 'challenge', /not made by this platform/)

  // A challenge for one use is not good for another.
  const { state, options } = await ada.client.call(startConfirmation, {})
  refused(await complete(platform, { state, credential: device.get(options) }), 'challenge', /another use/)
})

test('a counter that goes back is refused, and an authenticator without a counter is not', async (t) => {
  const { platform, mail } = await open(t)
  const [counting, plain] = [
    new Authenticator(originOf(platform)),
    new Authenticator(originOf(platform), { counts: false }),
  ]
  const ada = await logIn(platform, mail, 'ada@example.com')
  const bob = await logIn(platform, mail, 'bob@example.com')
  await add(ada.client, counting)
  await add(bob.client, plain)
  assert.equal((await signIn(platform, counting, { counter: 4_000_000_000 })).status, 200)
  refused(await signIn(platform, counting, { counter: 4_000_000_000 }), 'counter', /copy of this passkey/)
  refused(await signIn(platform, counting, { counter: 0 }), 'counter', /copy of this passkey/)
  assert.equal((await signIn(platform, counting, { counter: 4_000_000_001 })).status, 200)
  for (let count = 0; count < 2; count++) assert.equal((await signIn(platform, plain)).status, 200)
})

test('an addition takes its own challenge, no certificate, a new key, and at most ten passkeys', async (t) => {
  const { platform, mail } = await open(t)
  const device = new Authenticator(originOf(platform))
  const ada = await logIn(platform, mail, 'ada@example.com')
  const eve = await logIn(platform, mail, 'eve@example.com')
  const { state, options } = await ada.client.call(startPasskey, {})
  const { requireResidentKey, residentKey, userVerification } = options.authenticatorSelection
  assert.deepEqual([requireResidentKey, residentKey, userVerification], [true, 'required', 'required'])
  assert.deepEqual([options.rp.id, options.user.name], [new URL(originOf(platform)).hostname, 'ada@example.com'])

  const credential = device.create(options)
  const stolen = await failureOf(eve.client.call(addPasskey, { body: { state, name: 'x', credential } }))
  assert.deepEqual([stolen.code, stolen.metadata.reason], ['PASSKEY_REFUSED', 'challenge'])
  await ada.client.call(addPasskey, { body: { state, name: 'Laptop', credential } })

  const of_eve = await eve.client.call(startPasskey, {})
  const with_certificate = device.create(of_eve.options, { certificate: Buffer.from('certificate') })
  const body = { state: of_eve.state, name: 'x', credential: with_certificate }
  assert.match((await failureOf(eve.client.call(addPasskey, { body }))).message, /attestation/)

  await confirm(ada.client, device)
  for (let count = 1; count < PASSKEYS_MAX; count++) await add(ada.client, device, `Key ${count}`)
  assert.equal((await failureOf(ada.client.call(startPasskey, {}))).code, 'PASSKEY_LIMIT_REACHED')
  assert.equal((await ada.client.call(listPasskeys, {})).passkeys.length, PASSKEYS_MAX)

  const of_token = await failureOf(platform.client.call(startPasskey, {}))
  assert.equal(of_token.code, 'API_FORBIDDEN')
  assert.deepEqual(await platform.client.call(listPasskeys, {}), { passkeys: [] })
})

test('deletion of a game asks a person with a passkey, for five minutes, and asks no token', async (t) => {
  const { platform, mail } = await open(t)
  const device = new Authenticator(originOf(platform))
  const ada = await logIn(platform, mail, 'ada@example.com')
  const [first, second, third] = [await newGame(ada), await newGame(ada), await newGame(ada)]
  await ada.client.call(deleteGame, { params: { game_id: first } })

  await add(ada.client, device)
  const asked = await failureOf(ada.client.call(deleteGame, { params: { game_id: second } }))
  assert.deepEqual([asked.status, asked.code], [403, 'CONFIRMATION_REQUIRED'])
  assert.match(asked.message, /auth\.confirmation\.start/)
  // A stranger's passkey confirms nothing.
  const stranger = new Authenticator(originOf(platform))
  const eve = await logIn(platform, mail, 'eve@example.com')
  await add(eve.client, stranger)
  const { state, options } = await ada.client.call(startConfirmation, {})
  const body = { state, credential: stranger.signWith(stranger.keys[0]!, options) }
  const foreign = await failureOf(ada.client.call(completeConfirmation, { body }))
  assert.deepEqual([foreign.code, foreign.metadata.reason], ['PASSKEY_REFUSED', 'unknown'])

  // Until the last moment of the window. The user token outlives it.
  await confirm(ada.client, device)
  platform.advance(5 * MINUTE_MS - 1_000)
  await ada.client.call(deleteGame, { params: { game_id: second } })
  platform.advance(2_000)
  assert.equal(
    (await failureOf(ada.client.call(deleteGame, { params: { game_id: third } }))).code,
    'CONFIRMATION_REQUIRED',
  )
  // A confirmation is of one session.
  const other = await logIn(platform, mail, 'ada@example.com')
  await confirm(other.client, device)
  assert.equal(
    (await failureOf(ada.client.call(deleteGame, { params: { game_id: third } }))).code,
    'CONFIRMATION_REQUIRED',
  )

  const params = { game_id: third }
  const [{ token }, spare] = [
    await ada.client.call(createCloudToken, { params }),
    await ada.client.call(createCloudToken, { params }),
  ]
  const { token_id } = platform.ctx.keys.verify(spare.token, platform.ctx.now())
  const revocation = { params: { ...params, token_id } }
  assert.equal((await failureOf(ada.client.call(revokeGameCloudToken, revocation))).code, 'CONFIRMATION_REQUIRED')
  await platform.as(token).call(revokeGameCloudToken, revocation)
  await platform.client.call(deleteGame, { params })
})

test('every operation that the contract flags asks, and no other does', async (t) => {
  const flagged = OPERATIONS.filter(({ confirm: flag }) => flag)
  assert.deepEqual(flagged.map(({ id }) => id).toSorted(), CONFIRMED)
  const { platform } = await open(t)
  const device = new Authenticator(originOf(platform))
  const { cookie } = await signInByLink(platform)
  const admin = await clientOf(platform, cookie)
  await add(admin, device)
  const token = String((await refresh(platform, cookie)).body.token)
  for (const operation of flagged) {
    assert.equal(await codeOf(platform, token, operation), 'CONFIRMATION_REQUIRED', operation.id)
    // The administrator's access token is asked by none of them.
    assert.notEqual(await codeOf(platform, platform.token, operation), 'CONFIRMATION_REQUIRED', operation.id)
  }
  await confirm(admin, device)
  for (const operation of flagged) {
    assert.notEqual(await codeOf(platform, token, operation), 'CONFIRMATION_REQUIRED', operation.id)
  }
})

/** The error code of a call about things that do not exist; undefined when it succeeds. */
async function codeOf({ api_url }: Platform, token: string, { method, path }: Operation): Promise<string | undefined> {
  const address = path.replace('{provider_name}', 'none').replace(/\{\w+\}/g, '00000000-0000-7000-8000-000000000000')
  const response = await fetch(`${api_url}${address}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: path === '/nodes/remove' ? JSON.stringify({ node_id: 'none' }) : '{}',
  })
  return ((await response.json()) as Partial<ErrorBody>).code
}

async function signInByLink(platform: Platform) {
  const { url } = await platform.client.call(createSignInLink, {})
  const link = new URL(url).searchParams.get('link')
  return say(platform, completeLinkVerification, { link }, hub(platform))
}

test('a passkey of an administrator ends with the access token', async (t) => {
  const { platform } = await open(t)
  const device = new Authenticator(originOf(platform))
  const { cookie } = await signInByLink(platform)
  await add(await clientOf(platform, cookie), device)
  const signed_in = await signIn(platform, device)
  const admin = await clientOf(platform, signed_in.cookie)
  await admin.call(listAuditEvents, { query: {} })
  const { token_id } = platform.ctx.keys.verify(platform.token, platform.ctx.now())
  const second = platform.ctx.keys.issue(
    { kind: 'access', name: 'second' },
    { now_ms: platform.ctx.now(), lifetime_ms: null },
  )
  await createClient({ url: platform.api_url, token: second }).call(revokeToken, { params: { token_id } })
  assert.equal((await failureOf(admin.call(listAuditEvents, { query: {} }))).code, 'TOKEN_REVOKED')
  refused(await signIn(platform, device), 'not_for_sign_in', /access token .* was revoked/)
})

test('without log-in by e-mail a passkey still signs in, and an administrator removes lost ones', async (t) => {
  const { platform, mail } = await open(t)
  const device = new Authenticator(originOf(platform))
  const ada = await logIn(platform, mail, 'ada@example.com')
  await add(ada.client, device)
  platform.ctx.config.email_login = 'off'
  const { login_methods } = await createClient({ url: platform.api_url }).call(getBootstrap, {})
  assert.equal(login_methods.email, false)
  const { status, cookie } = await signIn(platform, device)
  assert.equal(status, 200)
  const params = { user_id: ada.user_id }
  const removed = await platform.client.call(removePasskeysOf, { params })
  assert.deepEqual(removed, { removed_count: 1, ended_count: 1 })
  assert.equal((await refresh(platform, cookie)).status, 401)
  assert.deepEqual(await platform.client.call(removePasskeysOf, { params }), { removed_count: 0, ended_count: 0 })
})

test('where browsers allow no passkeys, the platform says so and names the settings', async (t) => {
  const { platform } = await open(t)
  platform.ctx.config.public_scheme = 'http'
  platform.ctx.config.domains = { ...platform.ctx.config.domains, main: 'hub.example.com' }
  const failure = await failureOf(createClient({ url: platform.api_url }).call(startPasskeySignIn, { body: {} }))
  assert.equal(failure.code, 'PASSKEY_UNAVAILABLE')
  assert.match(failure.message, /MUSTER_PUBLIC_SCHEME=https/)
})
