import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createClient, MusterError, socketUrl } from './browser.ts'
import { openPlayer } from './player.ts'
import { refusal, startTestPlatform } from './test-platform.ts'

const seat = {
  lobby: { lobby_id: 'the-lobby', region: { region_id: 'local', display_name: 'Local' }, ports: {}, player: {} },
  ports: { game: { host: 'h:80', hostname: 'h', port: 80, is_tls: false, url: 'http://h/lobbies/the-lobby/game/' } },
  player: { token: 'player.token' },
}

test('find asks for a seat and hands back the answer', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer({ status: 200, body: seat })
  const client = createClient({ matchmaker_url: `${platform.url}/`, token: 'pub_prod.x' })
  const answer = await client.find({ game_modes: ['default'], tags: { map: 'dust' } })
  assert.equal(answer.player.token, 'player.token')
  const [asked] = platform.asked
  assert.equal(asked?.method, 'POST')
  assert.equal(asked?.path, '/matchmaker/lobbies/find')
  assert.equal(asked?.headers.authorization, 'Bearer pub_prod.x')
  assert.deepEqual(asked?.body, { game_modes: ['default'], tags: { map: 'dust' } })
})

/** A storage of a tab, with what it holds. */
function tabStorage() {
  const items = new Map<string, string>()
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
  }
}

const own = (token: string, is_connected = false) => ({ ...seat, player: { token }, is_connected })

test('a page that is loaded again resumes the seat that its tab got last, and asks for no other', async (t) => {
  const platform = await startTestPlatform(t)
  const seat_storage = tabStorage()
  const open = () => createClient({ matchmaker_url: platform.url, seat_storage })
  assert.equal(await open().resume(), null)
  assert.equal(platform.asked.length, 0, 'a new tab asks for nothing')

  platform.answer({ status: 200, body: seat }, { status: 200, body: { seats: [own('player.token', true)] } })
  await open().find({ game_modes: ['default'] })
  assert.equal((await open().resume())?.player.token, 'player.token')
  assert.deepEqual(
    [platform.asked[1]?.path, platform.asked[1]?.body],
    ['/matchmaker/seats/own', { player_token: 'player.token' }],
  )

  const left = open()
  left.forget()
  assert.equal(await left.resume(), null)
  assert.equal(platform.asked.length, 2, 'a seat that was forgotten is not asked for')
})

test('a seat that has ended, and a token that the platform does not know, are forgotten', async (t) => {
  for (const answer of [{ status: 200, body: { seats: [] } }, refusal(400, 'PLAYER_TOKEN_INVALID')]) {
    const platform = await startTestPlatform(t)
    const seat_storage = tabStorage()
    const client = createClient({ matchmaker_url: platform.url, seat_storage })
    platform.answer({ status: 200, body: seat }, answer)
    await client.join({ lobby_id: 'the-lobby' })
    assert.equal(await client.resume(), null)
    assert.equal(await client.resume(), null)
    assert.equal(platform.asked.length, 2)
  }
})

test('an identity resumes a seat of another tab only while that has no connection', async (t) => {
  const platform = await startTestPlatform(t)
  const client = createClient({ matchmaker_url: platform.url, token: 'game_user.x', seat_storage: tabStorage() })
  platform.answer({ status: 200, body: { seats: [own('player.one', true)] } })
  assert.equal(await client.resume(), null)
  platform.answer({ status: 200, body: { seats: [own('player.one', true), own('player.two')] } })
  assert.equal((await client.resume())?.player.token, 'player.two')
  assert.deepEqual(platform.asked[0]?.body, {})
})

test('without a token no Authorization is sent: the origin stands for it', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer({ status: 200, body: seat })
  await createClient({ matchmaker_url: platform.url }).join({ lobby_id: 'the-lobby' })
  assert.equal(platform.asked[0]?.path, '/matchmaker/lobbies/join')
  assert.equal(platform.asked[0]?.headers.authorization, undefined)
})

test('create opens a lobby with everything that is said of it', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer({ status: 200, body: seat })
  const request = {
    game_mode: 'duel',
    region: 'local',
    publicity: 'private',
    tags: { map: 'dust' },
    max_players: 2,
    lobby_config: { rounds: 3 },
    verification_data: { account: 'ada' },
  } as const
  const { player } = await createClient({ matchmaker_url: platform.url }).create(request)
  assert.equal(player.token, 'player.token')
  assert.equal(platform.asked[0]?.path, '/matchmaker/lobbies/create')
  assert.deepEqual(platform.asked[0]?.body, request)
})

/** Runs `work` while a member of the global object, or of one of its objects, is another one. */
async function withMember(
  object: object,
  name: string,
  descriptor: PropertyDescriptor,
  work: () => Promise<unknown>,
): Promise<void> {
  const before = Object.getOwnPropertyDescriptor(object, name)
  Object.defineProperty(object, name, { ...descriptor, configurable: true })
  try {
    await work()
  } finally {
    Reflect.deleteProperty(object, name)
    if (before !== undefined) Object.defineProperty(object, name, before)
  }
}

test('a page of a plain http address in the local network, which has no randomUUID, finds a seat', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer({ status: 200, body: seat })
  await withMember(crypto, 'randomUUID', { value: undefined }, () =>
    createClient({ matchmaker_url: platform.url }).find({ game_modes: ['default'] }),
  )
  assert.match(String(platform.asked[0]?.headers['idempotency-key']), /^[0-9a-f]{32}$/)
})

test('a page in a frame whose storage the browser blocks has a guest for each visit', async (t) => {
  const platform = await startTestPlatform(t)
  const guest = { identity: { identity_id: 'a', display_name: 'Guest', is_registered: false }, identity_token: 'token' }
  const blocked = () => {
    throw new DOMException('The operation is insecure.', 'SecurityError')
  }
  for (const descriptor of [{ get: blocked }, { value: { getItem: blocked, setItem: blocked } }]) {
    platform.answer({ status: 200, body: guest })
    await withMember(globalThis, 'localStorage', descriptor, async () => {
      assert.equal((await openPlayer({ matchmaker_url: platform.url })).identity.identity_id, 'a')
    })
  }
  assert.deepEqual(
    platform.asked.map(({ body }) => body),
    [{}, {}],
  )
})

test('watchSeats asks for waits only for a page that wants them, and reports each wait, its end and the seat', async (t) => {
  const platform = await startTestPlatform(t)
  const news = (index: string, ...kinds: object[]) => {
    const events = kinds.map((kind, number) => ({ event_id: `${index}${number}`, kind }))
    return { status: 200, body: { events, watch: { index } } }
  }
  const wait = { reason: 'waiting', players_missing: 2 }
  platform.answer(
    { status: 200, body: { identity: {}, identity_token: 'token' } },
    news('one', { matchmaker_waiting: wait }),
    news('two', { matchmaker_lobby_join: seat }, { matchmaker_wait_ended: { reason: 'ready' } }),
    news('three', { matchmaker_lobby_join: seat }),
  )
  const player = await openPlayer({ matchmaker_url: platform.url, storage: null, seat_storage: null })
  const reported: unknown[] = []
  const watching = new AbortController()
  const { signal } = watching
  const onWaiting = (waiting: unknown) => reported.push(waiting) === 3 && watching.abort()
  await player.watchSeats(({ player: { token } }) => reported.push(token), { onWaiting, signal })
  assert.deepEqual(reported, [wait, 'player.token', null])
  const second = new AbortController()
  await player.watchSeats(() => second.abort(), { signal: second.signal })
  assert.deepEqual(
    platform.asked.slice(1).map(({ path }) => path.split('?')[1]),
    ['waiting_every_s=3', 'waiting_every_s=3&watch_index=one', ''],
  )
})

/** Runs `work` as a page that came from the platform with this version. */
const onPageOf = (version_id: string, work: () => Promise<unknown>) =>
  withMember(
    performance,
    'getEntriesByType',
    { value: () => [{ serverTiming: [{ name: 'other' }, { name: 'muster-version', description: version_id }] }] },
    work,
  )

test('requests for seats name the version of the page, unless an option or a token says otherwise', async (t) => {
  const platform = await startTestPlatform(t)
  const { url: matchmaker_url } = platform
  const seated = { status: 200, body: seat }
  platform.answer(seated, seated, seated, seated, seated, seated)
  await onPageOf('v1', async () => {
    const client = createClient({ matchmaker_url })
    await client.find({ game_modes: ['default'] })
    await client.create({ game_mode: 'default' })
    await client.join({ lobby_id: 'the-lobby' })
    await createClient({ matchmaker_url, version_id: null }).join({ lobby_id: 'the-lobby' })
    await createClient({ matchmaker_url, version_id: 'v2', token: 'pub_prod.x' }).join({ lobby_id: 'the-lobby' })
    // The namespace of a token is not that of the page.
    await createClient({ matchmaker_url, token: 'pub_prod.x' }).join({ lobby_id: 'the-lobby' })
    platform.answer({ status: 200, body: { identity: {}, identity_token: 'token' } }, seated)
    const player = await openPlayer({ matchmaker_url, storage: null })
    await player.join({ lobby_id: 'the-lobby' })
  })
  const versions = platform.asked
    .filter(({ path }) => path.startsWith('/matchmaker/'))
    .map(({ body }) => (body as { version_id?: string }).version_id)
  assert.deepEqual(versions, ['v1', 'v1', 'v1', undefined, 'v2', undefined, 'v1'])
})

test('a replaced version is reported to the page before the call fails, and a lobby of an earlier version is not', async (t) => {
  const platform = await startTestPlatform(t)
  const replaced = (version_id: string) => refusal(400, 'MATCHMAKER_VERSION_REPLACED', {}, { version_id })
  const reported: string[] = []
  const onVersionReplaced = (version_id: string) => void reported.push(version_id)
  await onPageOf('v1', async () => {
    const client = createClient({ matchmaker_url: platform.url, onVersionReplaced })
    platform.answer(replaced('v2'), replaced('v1'), captchaRequired({ turnstile: { site_key: 'key' } }), replaced('v3'))
    await assert.rejects(client.find({ game_modes: ['default'] }), { code: 'MATCHMAKER_VERSION_REPLACED' })
    await assert.rejects(client.join({ lobby_id: 'old' }), { code: 'MATCHMAKER_VERSION_REPLACED' })
    const solving = createClient({ matchmaker_url: platform.url, onVersionReplaced, captcha: async () => 'response' })
    await assert.rejects(solving.find({ game_modes: ['default'] }), { code: 'MATCHMAKER_VERSION_REPLACED' })
    platform.answer(replaced('v2'))
    const silent = createClient({ matchmaker_url: platform.url })
    await assert.rejects(silent.find({ game_modes: ['default'] }), { code: 'MATCHMAKER_VERSION_REPLACED' })
  })
  assert.deepEqual(reported, ['v2', 'v3'])
})

const captchaRequired = (metadata: Record<string, unknown>) => refusal(403, 'CAPTCHA_CAPTCHA_REQUIRED', {}, metadata)

test('a captcha that is required is shown once, and the same request is sent again with its response', async (t) => {
  const platform = await startTestPlatform(t)
  const shown: unknown[] = []
  const client = createClient({
    matchmaker_url: platform.url,
    captcha: async (required) => `response ${shown.push(required)}`,
  })
  platform.answer(captchaRequired({ turnstile: { site_key: 'key' } }), { status: 200, body: seat })
  assert.equal((await client.find({ game_modes: ['default'], verification_data: 1 })).player.token, 'player.token')
  const [first, second] = platform.asked
  assert.deepEqual(second?.body, {
    ...(first?.body as object),
    captcha: { turnstile: { client_response: 'response 1' } },
  })
  assert.notEqual(second?.headers['idempotency-key'], first?.headers['idempotency-key'], 'another request')

  const hcaptcha = captchaRequired({ hcaptcha: { site_id: 'other', site_key: 'other' } })
  platform.answer(hcaptcha, refusal(400, 'CAPTCHA_CAPTCHA_FAILED'), hcaptcha, hcaptcha)
  await assert.rejects(client.join({ lobby_id: 'the-lobby' }), { code: 'CAPTCHA_CAPTCHA_FAILED' })
  await assert.rejects(client.create({ game_mode: 'default' }), { code: 'CAPTCHA_CAPTCHA_REQUIRED' })
  assert.deepEqual(shown, [
    { provider: 'turnstile', site_key: 'key' },
    { provider: 'hcaptcha', site_key: 'other' },
    { provider: 'hcaptcha', site_key: 'other' },
  ])
})

test('without a way to show a captcha, or when showing it fails, the call is refused', async (t) => {
  const platform = await startTestPlatform(t)
  const required = captchaRequired({ turnstile: { site_key: 'key' } })
  platform.answer(required, required, captchaRequired({}))
  const find = (captcha?: () => Promise<string>) =>
    createClient({ matchmaker_url: platform.url, ...(captcha && { captcha }) }).find({ game_modes: ['default'] })
  await assert.rejects(find(), { code: 'CAPTCHA_CAPTCHA_REQUIRED' })
  await assert.rejects(
    find(async () => Promise.reject(new RangeError('blocked'))),
    RangeError,
  )
  await assert.rejects(
    find(async () => assert.fail('nothing says which captcha')),
    { code: 'CAPTCHA_CAPTCHA_REQUIRED' },
  )
  assert.equal(platform.asked.length, 3)
})

test('a lost answer and a 503 are retried with the same key', async (t) => {
  const platform = await startTestPlatform(t)
  const found = { status: 200, body: seat }
  platform.answer('hang up', refusal(503, 'API_NOT_AVAILABLE'), found, found)
  const client = createClient({ matchmaker_url: platform.url })
  await client.find({ game_modes: ['default'] })
  await client.find({ game_modes: ['default'] })
  const keys = platform.asked.map((asked) => asked.headers['idempotency-key'])
  assert.equal(keys.length, 4)
  assert.equal(new Set(keys.slice(0, 3)).size, 1)
  assert.notEqual(keys[3], keys[0])
})

test('a refusal is final and carries the code', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(refusal(400, 'MATCHMAKER_NO_AVAILABLE_LOBBIES'))
  const found = createClient({ matchmaker_url: platform.url }).find({ game_modes: ['default'] })
  await assert.rejects(found, { name: 'MusterError', code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES', ray_id: 'ray-1' })
  assert.equal(platform.asked.length, 1)
})

test('a rate limit is final and says how long to wait', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(refusal(429, 'API_RATE_LIMIT', { 'retry-after': '7' }))
  const found = createClient({ matchmaker_url: platform.url }).find({ game_modes: ['default'] })
  await assert.rejects(found, { code: 'API_RATE_LIMIT', retry_after_ms: 7000 })
})

test('retries end, with the last refusal', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(...Array.from({ length: 40 }, () => refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '0' })))
  const found = createClient({ matchmaker_url: platform.url }).find({ game_modes: ['default'] })
  await assert.rejects(found, { code: 'API_NOT_AVAILABLE' })
  assert.equal(platform.asked.length, 32)
})

test('an answer that is not the platform’s is refused', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer({ status: 200, text: '<html>' })
  const found = createClient({ matchmaker_url: platform.url }).find({ game_modes: ['default'] })
  await assert.rejects(found, { code: 'BAD_ANSWER' })
})

test('an aborted find stops, also between two attempts', async (t) => {
  const platform = await startTestPlatform(t)
  platform.answer(refusal(503, 'API_NOT_AVAILABLE', { 'retry-after': '9' }), 'late')
  const leave = new AbortController()
  const found = createClient({ matchmaker_url: platform.url }).find(
    { game_modes: ['default'] },
    { signal: leave.signal },
  )
  while (platform.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
  leave.abort()
  await assert.rejects(found, { name: 'AbortError' })
  assert.equal(platform.asked.length, 1)
})

test('socketUrl swaps the scheme, appends the path and escapes the query', () => {
  const { game } = seat.ports
  assert.equal(
    socketUrl(game, '/play', { token: 'a.b', name: 'Ada L&' }),
    'ws://h/lobbies/the-lobby/game/play?token=a.b&name=Ada+L%26',
  )
  assert.equal(socketUrl({ ...game, url: 'https://h:8443' }), 'wss://h:8443/')
  assert.throws(() => socketUrl(undefined), MusterError)
})

test('the whole SDK is smaller than 10 KB, gzipped', async () => {
  const files = ['error.ts', 'request.ts', 'resume.ts', 'browser.ts', 'player.ts', 'server.ts']
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, import.meta.url), 'utf8')))
  const bytes = gzipSync(texts.map((text) => stripTypeScriptTypes(text)).join('\n')).length
  assert.ok(bytes <= 10 * 1024, `${bytes} bytes`)
})
