// Tokens: `label.header.claims.signature`. The signature covers the label, the header and the claims. The header selects
// the key and must be that of a key of the ring. The kind inside the signed claims determines the permitted algorithm. A
// token is issued once and valid until it expires. Callers check by `token_id` whether it was revoked or consumed.
import assert from 'node:assert'
import { createHmac, hash, hkdfSync } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import { newId } from '../ids.ts'
import {
  decodeClaims,
  encodeClaims,
  KINDS,
  type Kind,
  type Subject,
  type Token,
  type TokenAlgorithm,
} from './claims.ts'
import { createRing, followRing, type Ring, type RingKey } from './ring.ts'
import { createEd25519Signer, createHmacSigner, fromBase64url, type Signer } from './signer.ts'
import { createTokenCache } from './token-cache.ts'

export type { ClaimedPort, Subject, Token } from './claims.ts'

export type IssueOptions = { now_ms: number; lifetime_ms: number | null; name?: string; token_id?: string }

export type Keys = {
  /**
   * Issues a token, valid from `now_ms` for `lifetime_ms` (null: forever). The label follows from the kind: access, cloud,
   * pub_<name>, dev_<name>, lobby, player. `name`: only for those two, the namespace's name_id, whose dashes become
   * underscores. With `token_id` the result is deterministic: the same arguments return the same token.
   */
  issue: (subject: Subject, options: IssueOptions) => string
  /**
   * Returns the claims of the token, frozen. Throws ApiError TOKEN_INVALID, or TOKEN_EXPIRED from the ms `expire_ms` on. A
   * time of issue in the future is accepted, because clocks are set back.
   */
  verify: (text: string, now_ms: number) => Token
  /** HMAC-SHA-256 under the subkey of `purpose`, a constant of the code such as 'upload'. */
  mac: (purpose: string, data: string) => Buffer
  /** The keys that sign and verify player tokens, for edges of joined nodes. */
  playerKeys: () => readonly RingKey[]
  /** Loads the ring again, which a rotation may have changed. Throws when it cannot be read; then the old one stays. */
  refresh: () => Promise<void>
}

/** The keys of a folder, made on the first start. Every process and every later start reads the same keys. */
export async function openKeys(folder: string): Promise<Keys> {
  const { ring, read } = await followRing(folder)
  return keysOf(ring, read)
}

/** Keys in memory only, for tests and for nodes that have joined. */
export function createKeys(): Keys {
  return keysOf(createRing())
}

/** Whether `verify` accepts the token now. */
export function isValid(keys: Keys, token: string, now_ms: number): boolean {
  try {
    keys.verify(token, now_ms)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** Characters of a token; the platform's have fewer than 400. Checked before anything is decoded. */
const TOKEN_LENGTH_MAX = 2048
/** Cached verified tokens, about 400 bytes each. An Ed25519 verification costs some 50 times a look-up. */
const CACHED_MAX = 16_384
/** Purposes of MACs. They are constants of the code, so more of them are a bug. */
const PURPOSES_MAX = 32
const LABEL_NAME = /^[a-z0-9_]{1,64}$/

export function keysOf(first: Ring, read: () => Promise<Ring> = async () => first): Keys {
  return new RingKeys(first, read)
}

class RingKeys implements Keys {
  readonly #read: () => Promise<Ring>
  readonly #root: Buffer
  readonly #subkeys = new Map<string, Buffer>()
  #ring: Ring
  #signers: readonly RingSigner[]
  #signer_by_header: ReadonlyMap<string, RingSigner>
  #verified = createTokenCache(CACHED_MAX)
  /** When the next key ends. Tokens that it signed must not be cached beyond that time. */
  #next_end_ms: number

  constructor(ring: Ring, read: () => Promise<Ring>) {
    this.#read = read
    this.#root = Buffer.from(rootOf(ring).secret, 'base64url')
    this.#ring = ring
    this.#signers = signersOf(ring)
    this.#signer_by_header = byHeader(this.#signers)
    this.#next_end_ms = nextEnd(this.#signers, 0)
  }

  issue(subject: Subject, { now_ms, lifetime_ms, name, token_id }: IssueOptions): string {
    assert(lifetime_ms === null || lifetime_ms > 0, 'The lifetime of a token must be positive.')
    const issue_ms = Math.trunc(now_ms)
    const expire_ms = lifetime_ms === null ? null : issue_ms + Math.trunc(lifetime_ms)
    const issuer = issuerOf(this.#signers, KINDS[subject.kind].algorithm, issue_ms)
    const claims = encodeClaims({ ...subject, token_id: token_id ?? newId(issue_ms), issue_ms, expire_ms })
    const text = `${labelOf(subject.kind, name)}.${issuer.header}.${claims.toString('base64url')}`
    return `${text}.${issuer.sign(text)}`
  }

  verify(text: string, now_ms: number): Token {
    if (text.length > TOKEN_LENGTH_MAX) throw invalid()
    const token = this.#cached(text, now_ms)
    if (token.expire_ms !== null && now_ms >= token.expire_ms) {
      throw new ApiError('TOKEN_EXPIRED', { expire_ts: new Date(token.expire_ms).toISOString() })
    }
    return token
  }

  mac(purpose: string, data: string): Buffer {
    let subkey = this.#subkeys.get(purpose)
    if (subkey === undefined) {
      assert(this.#subkeys.size < PURPOSES_MAX, 'A purpose is a constant of the code, not data.')
      subkey = Buffer.from(hkdfSync('sha256', this.#root, '', `muster/mac/${purpose}`, 32))
      this.#subkeys.set(purpose, subkey)
    }
    return createHmac('sha256', subkey).update(data).digest()
  }

  playerKeys(): readonly RingKey[] {
    return this.#ring.keys.filter(({ algorithm }) => algorithm === KINDS.player.algorithm)
  }

  async refresh(): Promise<void> {
    const fresh = await this.#read()
    if (fresh === this.#ring || JSON.stringify(fresh) === JSON.stringify(this.#ring)) return
    const signers = signersOf(fresh)
    this.#ring = fresh
    this.#signers = signers
    this.#signer_by_header = byHeader(signers)
    this.#next_end_ms = 0
  }

  #cached(text: string, now_ms: number): Token {
    if (now_ms >= this.#next_end_ms) {
      this.#next_end_ms = nextEnd(this.#signers, now_ms)
      this.#verified = createTokenCache(CACHED_MAX)
    }
    const digest = hash('sha256', text, 'base64url')
    const known = this.#verified.get(digest)
    if (known !== undefined) return known
    const token = this.#authenticate(text, now_ms)
    // A MAC costs little more than the look-up, and tokens of players are many: they would displace all others.
    if (KINDS[token.kind].algorithm === 'ed25519') this.#verified.set(digest, token)
    return token
  }

  #authenticate(text: string, now_ms: number): Token {
    const parts = text.split('.', 5)
    const [label, header, claims, signature] = parts
    const known = parts.length === 4 ? this.#signer_by_header.get(header ?? '') : undefined
    if (label === undefined || claims === undefined || signature === undefined || known === undefined) throw invalid()
    if (now_ms >= known.verify_until_ms) throw invalid()
    const { signer } = known
    if (!signer.verify(`${label}.${header}.${claims}`, signature)) throw invalid()
    const bytes = fromBase64url(claims)
    const token = bytes === null ? null : decodeClaims(bytes)
    if (token === null || KINDS[token.kind].algorithm !== signer.algorithm || !isLabelOf(token.kind, label)) {
      throw invalid()
    }
    return Object.freeze(token)
  }
}

type RingSigner = { signer: Signer; sign_from_ms: number; verify_until_ms: number }

function signersOf(ring: Ring): RingSigner[] {
  return ring.keys.flatMap((key): RingSigner[] => {
    if (key.algorithm === 'hkdf-sha256') return []
    const signer = key.algorithm === 'ed25519' ? createEd25519Signer(key) : createHmacSigner(key)
    const { sign_from_ms = 0, verify_until_ms = Number.POSITIVE_INFINITY } = key
    return [{ signer, sign_from_ms, verify_until_ms }]
  })
}

function byHeader(signers: readonly RingSigner[]): Map<string, RingSigner> {
  return new Map(signers.map((item) => [item.signer.header, item]))
}

/** Depends only on the moment of issue, so that a token that is issued again is identical. */
function issuerOf(signers: readonly RingSigner[], algorithm: TokenAlgorithm, issue_ms: number): Signer {
  const able = signers.filter((item) => item.signer.algorithm === algorithm)
  const found = able.findLast((item) => item.sign_from_ms <= issue_ms && issue_ms < item.verify_until_ms) ?? able.at(-1)
  assert(found !== undefined, `The key ring has no ${algorithm} key.`)
  return found.signer
}

function nextEnd(signers: readonly RingSigner[], now_ms: number): number {
  return Math.min(...signers.map((item) => item.verify_until_ms).filter((end) => end > now_ms))
}

function labelOf(kind: Kind, name: string | undefined): string {
  const { label, named } = KINDS[kind]
  if (!named) return label
  const suffix = name?.replaceAll('-', '_') ?? ''
  assert(LABEL_NAME.test(suffix), `A token of kind ${kind} is labelled with a name_id.`)
  return `${label}_${suffix}`
}

function isLabelOf(kind: Kind, text: string): boolean {
  const { label, named } = KINDS[kind]
  if (!named) return text === label
  return text.startsWith(`${label}_`) && LABEL_NAME.test(text.slice(label.length + 1))
}

function rootOf(ring: Ring): RingKey {
  const key = ring.keys.findLast((candidate) => candidate.algorithm === 'hkdf-sha256')
  assert(key !== undefined, 'The key ring has no root.')
  return key
}

/** Without a reason, which would help an attacker to forge tokens. */
function invalid(): ApiError {
  return new ApiError('TOKEN_INVALID')
}
