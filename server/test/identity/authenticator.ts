// An authenticator in software: it makes passkeys of P-256, keeps them by host, and signs as WebAuthn says. So the platform is
// tested with responses that are real, and with those that are wrong in one place.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import type {
  PasskeyAssertion,
  PasskeyRegistration,
  ResponseOf,
  startPasskey,
  startPasskeySignIn,
} from '@musterhost/contract'

type CreationOptions = ResponseOf<typeof startPasskey>['options']
type RequestOptions = ResponseOf<typeof startPasskeySignIn>['options']

/** What is wrong in a response. `counter`: the one that it claims. */
export type Wrong = {
  origin?: string
  rp_id?: string
  counter?: number
  is_verified?: boolean
  user_handle?: string
  key?: KeyObject
  certificate?: Buffer
}

export type SoftKey = { id: Buffer; user_handle: string; private_key: KeyObject; counter: number }

const FLAGS = { present: 0x01, verified: 0x04, has_credential: 0x40 } as const

export class Authenticator {
  readonly keys: SoftKey[] = []
  readonly #origin: string
  /** Whether it counts its uses. Many that sync their passkeys do not. */
  readonly #counts: boolean

  constructor(origin: string, { counts = true } = {}) {
    this.#origin = origin
    this.#counts = counts
  }

  create(options: CreationOptions, wrong: Wrong = {}): PasskeyRegistration {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = { id: randomBytes(32), user_handle: options.user.id, private_key: privateKey, counter: 0 }
    this.keys.push(key)
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    const cose = new Map<Cbor, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ])
    const length = Buffer.alloc(2)
    length.writeUInt16BE(key.id.length)
    const credential = Buffer.concat([Buffer.alloc(16), length, key.id, cbor(cose)])
    const data = this.#data(options.rp.id, key, wrong, credential)
    const { certificate } = wrong
    const statement = new Map<Cbor, Cbor>(certificate === undefined ? [] : [['x5c', [certificate]]])
    const attestation = new Map<Cbor, Cbor>([
      ['fmt', certificate === undefined ? 'none' : 'packed'],
      ['attStmt', statement],
      ['authData', data],
    ])
    const response = {
      clientDataJSON: this.#client('webauthn.create', options.challenge, wrong).toString('base64url'),
      attestationObject: cbor(attestation).toString('base64url'),
      transports: ['internal'],
    }
    return { ...head(key), response }
  }

  /** Signs with the first key that may respond, as a browser would. */
  get(options: RequestOptions, wrong: Wrong = {}): PasskeyAssertion {
    const allowed = options.allowCredentials.map(({ id }) => id)
    const key = this.keys.find(({ id }) => allowed.length === 0 || allowed.includes(id.toString('base64url')))
    if (key === undefined) throw new Error('The authenticator has no passkey that may respond.')
    return this.signWith(key, options, wrong)
  }

  signWith(key: SoftKey, options: RequestOptions, wrong: Wrong = {}): PasskeyAssertion {
    if (this.#counts) key.counter += 1
    const client = this.#client('webauthn.get', options.challenge, wrong)
    const data = this.#data(options.rpId, key, wrong)
    const signature = sign('sha256', Buffer.concat([data, sha256(client)]), wrong.key ?? key.private_key)
    const response = {
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle: wrong.user_handle ?? key.user_handle,
    }
    return { ...head(key), response }
  }

  #client(type: string, challenge: string, { origin = this.#origin }: Wrong): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
  }

  #data(rp_id: string, key: SoftKey, wrong: Wrong, credential = Buffer.alloc(0)): Buffer {
    const { is_verified = true, counter = key.counter } = wrong
    const flags =
      FLAGS.present | (is_verified ? FLAGS.verified : 0) | (credential.length > 0 ? FLAGS.has_credential : 0)
    const rest = Buffer.alloc(5)
    rest.writeUInt8(flags)
    rest.writeUInt32BE(counter, 1)
    return Buffer.concat([sha256(Buffer.from(wrong.rp_id ?? rp_id)), rest, credential])
  }
}

function head({ id }: SoftKey) {
  const text = id.toString('base64url')
  return { id: text, rawId: text, type: 'public-key' as const, clientExtensionResults: {} }
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}

type Cbor = number | string | Buffer | readonly Cbor[] | ReadonlyMap<Cbor, Cbor>

/** The parts of CBOR that attestations use. */
function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? begin(1, -1 - value) : begin(0, value)
  if (typeof value === 'string') return Buffer.concat([begin(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([begin(2, value.length), value])
  if (value instanceof Map) {
    return Buffer.concat([begin(5, value.size), ...[...value].flatMap(([name, member]) => [cbor(name), cbor(member)])])
  }
  const list = value as readonly Cbor[]
  return Buffer.concat([begin(4, list.length), ...list.map(cbor)])
}

function begin(kind: number, count: number): Buffer {
  const major = kind << 5
  if (count < 24) return Buffer.from([major | count])
  if (count < 256) return Buffer.from([major | 24, count])
  return Buffer.from([major | 25, count >> 8, count & 0xff])
}
