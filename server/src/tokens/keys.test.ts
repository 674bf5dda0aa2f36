import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import { ApiError, type ErrorCode } from '@musterhost/contract'
import { encodeClaims, type Token } from './claims.ts'
import { createKeys, keysOf, type Subject } from './keys.ts'
import { createRing, createRingKey, type Ring } from './ring.ts'
import { createEd25519Signer, createHmacSigner, type Signer } from './signer.ts'

const NOW = 1_790_000_000_000
const ID = '0190a0b0-1234-7abc-8def-0123456789ab'
const OTHER = '0190a0b0-1234-7abc-8def-0123456789ac'
const SUBJECTS: { subject: Subject; name?: string; label: string }[] = [
  { subject: { kind: 'access', name: 'admin' }, label: 'access' },
  { subject: { kind: 'cloud', game_id: ID }, label: 'cloud' },
  { subject: { kind: 'public', namespace_id: ID }, name: 'prod-eu', label: 'pub_prod_eu' },
  { subject: { kind: 'lobby', lobby_id: ID, namespace_id: OTHER }, label: 'lobby' },
  { subject: { kind: 'player', player_id: ID, lobby_id: OTHER, namespace_id: OTHER }, label: 'player' },
  { subject: { kind: 'user', user_id: ID, session_id: OTHER }, label: 'usr' },
  { subject: { kind: 'device', device_link_id: ID }, label: 'device' },
  { subject: { kind: 'dev_player', namespace_id: ID, player_id: OTHER }, label: 'dev_player' },
  {
    subject: {
      kind: 'development',
      namespace_id: ID,
      hostname: 'localhost',
      ports: [{ name: 'game', protocol: 'udp', port: null, port_range: { min: 26_000, max: 26_010 } }],
    },
    name: 'prod',
    label: 'dev_prod',
  },
  { subject: { kind: 'game_user', identity_id: ID, namespace_id: OTHER }, label: 'game_user' },
]
const LOBBY: Token = { kind: 'lobby', lobby_id: ID, namespace_id: OTHER, token_id: ID, issue_ms: NOW, expire_ms: null }
const PLAYER: Token = { ...LOBBY, kind: 'player', player_id: ID }

const ring = createRing()
const keys = keysOf(ring)
const ed25519Key = ring.keys.find((key) => key.algorithm === 'ed25519')!
const hmacKey = ring.keys.find((key) => key.algorithm === 'hmac-sha256')!
const ed25519 = createEd25519Signer(ed25519Key)
const hmac = createHmacSigner(hmacKey)

const base64url = (data: string | Uint8Array): string => Buffer.from(data).toString('base64url')

/** A token of arbitrary parts, validly signed by one of the platform's own keys. */
function craft(label: string, signer: Signer, claims: Uint8Array, header = signer.header): string {
  const text = `${label}.${header}.${base64url(claims)}`
  return `${text}.${signer.sign(text)}`
}

function refuses(text: string, code: ErrorCode = 'TOKEN_INVALID', now_ms = NOW): void {
  assert.throws(
    () => keys.verify(text, now_ms),
    (error) => error instanceof ApiError && error.code === code,
    text,
  )
}

for (const { subject, name, label } of SUBJECTS) {
  const issue = (lifetime_ms: number | null): string =>
    keys.issue(subject, { now_ms: NOW, lifetime_ms, ...(name === undefined ? {} : { name }) })

  test(`a ${subject.kind} token contains the claims it was issued with`, () => {
    const text = issue(60_000)
    assert.equal(text.split('.')[0], label)
    assert.ok(text.length < 400)
    const token = keys.verify(text, NOW)
    const { token_id, ...rest } = token
    assert.deepEqual(rest, { ...subject, issue_ms: NOW, expire_ms: NOW + 60_000 })
    assert.match(token_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    assert.notEqual(keys.verify(issue(60_000), NOW).token_id, token_id)
    assert.ok(Object.isFrozen(token))
    assert.equal(keys.verify(issue(null), NOW + 10 ** 12).expire_ms, null)
  })

  test(`a ${subject.kind} token expires to the millisecond, cached or not; one from the future is valid`, () => {
    const text = issue(60_000)
    assert.ok(keys.verify(text, NOW + 59_999))
    refuses(text, 'TOKEN_EXPIRED', NOW + 60_000)
    refuses(issue(60_000), 'TOKEN_EXPIRED', NOW + 60_000)
    assert.ok(keys.verify(text, NOW - 3_600_000))
  })

  test(`no bit of a ${subject.kind} token can be changed`, () => {
    const text = issue(60_000)
    keys.verify(text, NOW)
    const bytes = Buffer.from(text, 'latin1')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      refuses(flipped.toString('latin1'))
    }
    const parts = text.split('.')
    for (const [index, part] of parts.entries()) {
      if (index === 0) continue
      const decoded = Buffer.from(part, 'base64url')
      for (let bit = 0; bit < decoded.length * 8; bit++) {
        const flipped = Buffer.from(decoded)
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
        refuses(parts.with(index, flipped.toString('base64url')).join('.'))
      }
    }
    keys.verify(text, NOW)
  })

  test(`a ${subject.kind} token has one encoding, and every part is needed`, () => {
    const text = issue(60_000)
    for (let length = 0; length < text.length; length++) refuses(text.slice(0, length))
    for (const extra of ['=', '.', ' ', '\n', '\0', 'A', '.A', '\u00e9']) {
      refuses(text + extra)
      refuses(extra + text)
    }
    const parts = text.split('.')
    for (const [index, part] of parts.entries()) {
      for (const other of ['', `${part}=`, ` ${part}`, part.toUpperCase(), part.toLowerCase()]) {
        if (other !== part) refuses(parts.with(index, other).join('.'))
      }
      refuses(parts.toSpliced(index, 1).join('.'))
    }
  })

  test(`a ${subject.kind} token is refused under another label, even when signed with it`, () => {
    const [, header = '', claims = ''] = issue(60_000).split('.')
    const signer = header === hmac.header ? hmac : ed25519
    const bytes = Buffer.from(claims, 'base64url')
    keys.verify(craft(label, signer, bytes), NOW)
    const labels = ['access', 'cloud', 'pub', 'pub_', 'pub_A', 'pub_x', 'lobby', 'player', 'usr', 'device', 'game_user']
    for (const other of [...labels, 'dev', 'dev_', 'dev_x', 'dev_player', '', 'x', label.toUpperCase()]) {
      // Another namespace's name: what counts is the id inside, and the kind beside it.
      const is_name = name !== undefined && /^\w+_[a-z]+$/.test(other) && other.slice(0, 4) === label.slice(0, 4)
      if (other === label || is_name) continue
      refuses(craft(other, signer, bytes))
    }
  })
}

test('the algorithm is that of the key and of the kind, never chosen by the token', () => {
  keys.verify(craft('lobby', ed25519, encodeClaims(LOBBY)), NOW)
  keys.verify(craft('player', hmac, encodeClaims(PLAYER)), NOW)
  // A kind signed with the other kind's key, valid in itself.
  refuses(craft('lobby', hmac, encodeClaims(LOBBY)))
  refuses(craft('player', ed25519, encodeClaims(PLAYER)))
  const privateKey = createPrivateKey({
    key: Buffer.from(ed25519Key.secret, 'base64url'),
    format: 'der',
    type: 'pkcs8',
  })
  const publicKey = createPublicKey(privateKey)
  const secrets = [
    publicKey.export({ format: 'der', type: 'spki' }),
    publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
    publicKey.export({ format: 'pem', type: 'spki' }),
    `\n ${publicKey.export({ format: 'pem', type: 'spki' })}`,
    '',
  ]
  const kids = [ed25519Key.kid, hmacKey.kid, 'unknown', '../ring.json', '', '__proto__', 'constructor']
  const headers = kids.flatMap((kid) => [
    { typ: 'JWT', alg: 'none', kid },
    { typ: 'JWT', alg: 'HS256', kid },
    { typ: 'JWT', alg: 'EdDSA', kid },
    { alg: 'HS256', kid },
    { typ: 'JWT', alg: ' EdDSA', kid },
  ])
  for (const header of [
    ...headers.map((item) => base64url(JSON.stringify(item))),
    base64url('{}'),
    '',
    'e30=',
    ed25519.header,
  ]) {
    for (const [label, token] of [['lobby', LOBBY] as const, ['player', PLAYER] as const]) {
      const text = `${label}.${header}.${base64url(encodeClaims(token))}`
      refuses(text)
      refuses(`${text}.`)
      for (const secret of secrets) refuses(`${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`)
    }
  }
})

test('an equivalent header in another encoding is refused, even when it is signed', () => {
  const spellings = [
    { alg: 'EdDSA', typ: 'JWT', kid: ed25519Key.kid },
    { typ: 'JWT', alg: 'EdDSA', kid: ed25519Key.kid, crit: ['exp'] },
  ].map((header) => JSON.stringify(header))
  const duplicate = `{"typ":"JWT","alg":"none","alg":"EdDSA","kid":"${ed25519Key.kid}"}`
  for (const header of [...spellings, duplicate, `{"typ": "JWT","alg":"EdDSA","kid":"${ed25519Key.kid}"}`]) {
    refuses(craft('lobby', ed25519, encodeClaims(LOBBY), base64url(header)))
  }
})

test('degenerate and malleable Ed25519 signatures are refused', () => {
  const valid = craft('lobby', ed25519, encodeClaims(LOBBY))
  const text = valid.slice(0, valid.lastIndexOf('.'))
  const signature = Buffer.from(valid.slice(text.length + 1), 'base64url')
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const little = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
  const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`)
  const point = signature.subarray(0, 32)
  const identity = little(1n)
  const smallOrder = [
    identity,
    little(0n),
    little(2n ** 255n - 20n),
    little(2n ** 255n),
    Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex'),
    Buffer.from('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a', 'hex'),
  ]
  const forged = [
    Buffer.alloc(64),
    Buffer.alloc(64, 0xff),
    ...[1n, 2n, 4n, 7n].map((times) => Buffer.concat([point, little(scalar + order * times)])),
    ...smallOrder.flatMap((small) => [
      Buffer.concat([small, little(0n)]),
      Buffer.concat([small, little(order)]),
      Buffer.concat([small, signature.subarray(32)]),
    ]),
    signature.subarray(0, 63),
    signature.subarray(0, 32),
    Buffer.concat([signature, Buffer.alloc(1)]),
  ]
  assert.ok(keys.verify(`${text}.${Buffer.concat([point, little(scalar)]).toString('base64url')}`, NOW))
  for (const bytes of forged) refuses(`${text}.${bytes.toString('base64url')}`)
})

test('signed claims in another encoding are refused', () => {
  const claims = encodeClaims(LOBBY)
  for (const extra of [[0x00], [0x98, 0x06, 0x01], [0x10, 0x01]]) {
    refuses(craft('lobby', ed25519, Buffer.concat([claims, Buffer.from(extra)])))
  }
  refuses(craft('lobby', ed25519, Buffer.alloc(0)))
  refuses(craft('player', hmac, Buffer.concat([encodeClaims(PLAYER), Buffer.from([0x00])])))
  const text = `lobby.${ed25519.header}.${base64url(claims)}=`
  refuses(`${text}.${ed25519.sign(text)}`)
})

test('a text above 2 KiB is refused by its length alone', () => {
  const probe = (length: number): string =>
    new Proxy(
      { length },
      {
        get: (target, member) => {
          if (member === 'length') return target.length
          throw new Error(`${String(member)} was read`)
        },
      },
    ) as unknown as string
  assert.throws(() => keys.verify(probe(2049), NOW), { code: 'TOKEN_INVALID' })
  assert.throws(
    () => keys.verify(probe(2048), NOW),
    (error) => !(error instanceof ApiError),
  )
  refuses(craft('lobby', ed25519, Buffer.concat([encodeClaims(LOBBY), Buffer.alloc(100_000)])))
})

test('a token of another platform is refused', () => {
  const stranger = createKeys()
  for (const { subject, name } of SUBJECTS) {
    refuses(stranger.issue(subject, { now_ms: NOW, lifetime_ms: null, ...(name === undefined ? {} : { name }) }))
  }
})

test('rotation: older keys verify, the newest signs, a dropped key voids its tokens', () => {
  const rotated: Ring = { keys: [...ring.keys, createRingKey('ed25519'), createRingKey('hmac-sha256')] }
  const after = keysOf(rotated)
  const dropped = keysOf({
    keys: rotated.keys.filter((key) => !ring.keys.includes(key) || key.algorithm === 'hkdf-sha256'),
  })
  for (const { subject, name } of SUBJECTS) {
    const options = { now_ms: NOW, lifetime_ms: null, ...(name === undefined ? {} : { name }) }
    const old = keys.issue(subject, options)
    const fresh = after.issue(subject, options)
    assert.equal(after.verify(old, NOW).kind, subject.kind)
    assert.equal(dropped.verify(fresh, NOW).kind, subject.kind)
    refuses(fresh)
    assert.throws(() => dropped.verify(old, NOW), { code: 'TOKEN_INVALID' })
  }
  assert.deepEqual(after.mac('upload', 'x'), keys.mac('upload', 'x'))
})

test('a MAC depends on purpose, data and ring, and no token key makes it', () => {
  const mac = keys.mac('upload', 'data')
  assert.equal(mac.length, 32)
  assert.deepEqual(keys.mac('upload', 'data'), mac)
  const others = [keys.mac('login', 'data'), keys.mac('upload', 'date'), createKeys().mac('upload', 'data')]
  for (const key of ring.keys)
    others.push(createHmac('sha256', Buffer.from(key.secret, 'base64url')).update('data').digest())
  for (const other of others) assert.notDeepEqual(other, mac)
})

test('a public token needs the name of its namespace', () => {
  const subject: Subject = { kind: 'public', namespace_id: ID }
  for (const name of [undefined, '', 'a.b', 'A', 'x'.repeat(65)]) {
    assert.throws(() =>
      keys.issue(subject, { now_ms: NOW, lifetime_ms: null, ...(name === undefined ? {} : { name }) }),
    )
  }
})
