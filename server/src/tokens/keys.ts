// Tokens: `label.header.claims.signature`. The signature covers all that stands before it, the label too. Which key
// verifies follows from the header, which must be that of a key of the ring; which algorithm may speak for a kind
// follows from the kind inside the signed claims. A token is issued once and lives until it expires; whether it was
// revoked, or its player consumed, is for the rooms to say, by `token_id`.
import assert from 'node:assert'
import { createHmac, hash, hkdfSync } from 'node:crypto'
import { ApiError } from '@muster/contract'
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
import { createMemory } from './memory.ts'
import { createRing, openRing, type Ring, type RingKey } from './ring.ts'
import { createEd25519Signer, createHmacSigner, fromBase64url, type Signer } from './signer.ts'

export type { ClaimedPort, Subject, Token } from './claims.ts'

export type IssueOptions = { now_ms: number; lifetime_ms: number | null; name?: string; token_id?: string }

export type Keys = {
  /**
   * A new token, valid from `now_ms` for `lifetime_ms` (null: without end). The label follows from the kind: access,
   * cloud, pub_<name>, dev_<name>, lobby, player; `name` only for those two, the namespace's name_id, whose dashes become underscores.
   * With `token_id` the token follows from its subject and its moment: asked for again, it is the same to the letter.
   */
  issue: (subject: Subject, options: IssueOptions) => string
  /**
   * What the token says, frozen. Throws ApiError TOKEN_INVALID, or TOKEN_EXPIRED from the very ms of `expire_ms` on,
   * without any allowance. A time of issue that is still to come is no fault: clocks are set back.
   */
  verify: (text: string, now_ms: number) => Token
  /** HMAC-SHA-256 under a subkey of its own for `purpose`, a constant of the code such as 'upload'. */
  mac: (purpose: string, data: string) => Buffer
  /** Takes up what a rotation has made of the ring since it was read. Throws when it cannot be read; the old one holds. */
  refresh: () => Promise<void>
}

/** The keys of a folder, made on the first start; every process and every later start gets the same. */
export async function openKeys(folder: string): Promise<Keys> {
  return keysOf(await openRing(folder), () => openRing(folder))
}

/** Keys that end with the process, for tests. */
export function createKeys(): Keys {
  return keysOf(createRing())
}

/** Whether `verify` takes the token now. */
export function isValid(keys: Keys, token: string, now_ms: number): boolean {
  try {
    keys.verify(token, now_ms)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** The longest token; ours stay under 400. Looked at before anything is decoded. */
const TOKEN_LENGTH_MAX = 2048
/** Verified tokens remembered, about 400 bytes each. An Ed25519 verification costs some 50 times a look-up. */
const REMEMBERED_MAX = 16_384
const PURPOSES_MAX = 32
const LABEL_NAME = /^[a-z0-9_]{1,64}$/

export function keysOf(first: Ring, read: () => Promise<Ring> = async () => first): Keys {
  let { ring, signers, signerByHeader } = signersOf(first)
  const root = Buffer.from(rootOf(first).secret, 'base64url')
  const subkeys = new Map<string, Buffer>()
  let remembered = createMemory(REMEMBERED_MAX)
  /** When the next key ends: what it signed must not be remembered beyond that. */
  let next_end_ms = nextEnd(signers, 0)

  function authenticate(text: string, now_ms: number): Token {
    const parts = text.split('.', 5)
    const [label, header, claims, signature] = parts
    const known = parts.length === 4 ? signerByHeader.get(header ?? '') : undefined
    if (label === undefined || claims === undefined || signature === undefined || known === undefined) throw invalid()
    if (now_ms >= known.verify_until_ms) throw invalid()
    const { signer } = known
    if (!signer.verify(`${label}.${header}.${claims}`, signature)) throw invalid()
    const bytes = fromBase64url(claims)
    const token = bytes === null ? null : decodeClaims(bytes)
    if (token === null || KINDS[token.kind].algorithm !== signer.algorithm || !isLabelOf(token.kind, label))
      throw invalid()
    return Object.freeze(token)
  }

  function recall(text: string, now_ms: number): Token {
    if (now_ms >= next_end_ms) {
      next_end_ms = nextEnd(signers, now_ms)
      remembered = createMemory(REMEMBERED_MAX)
    }
    const digest = hash('sha256', text, 'base64url')
    const known = remembered.get(digest)
    if (known !== undefined) return known
    const token = authenticate(text, now_ms)
    // A MAC costs little more than the look-up, and players are many: they would push out all others.
    if (KINDS[token.kind].algorithm === 'ed25519') remembered.set(digest, token)
    return token
  }

  return {
    issue(subject, { now_ms, lifetime_ms, name, token_id }) {
      assert(lifetime_ms === null || lifetime_ms > 0, 'A token must live for a while.')
      const issue_ms = Math.trunc(now_ms)
      const expire_ms = lifetime_ms === null ? null : issue_ms + Math.trunc(lifetime_ms)
      const issuer = issuerOf(signers, KINDS[subject.kind].algorithm, issue_ms)
      const claims = encodeClaims({ ...subject, token_id: token_id ?? newId(issue_ms), issue_ms, expire_ms })
      const text = `${labelOf(subject.kind, name)}.${issuer.header}.${claims.toString('base64url')}`
      return `${text}.${issuer.sign(text)}`
    },

    verify(text, now_ms) {
      if (text.length > TOKEN_LENGTH_MAX) throw invalid()
      const token = recall(text, now_ms)
      if (token.expire_ms !== null && now_ms >= token.expire_ms) {
        throw new ApiError('TOKEN_EXPIRED', { expire_ts: new Date(token.expire_ms).toISOString() })
      }
      return token
    },

    mac(purpose, data) {
      let subkey = subkeys.get(purpose)
      if (subkey === undefined) {
        assert(subkeys.size < PURPOSES_MAX, 'A purpose is a constant of the code, not data.')
        subkey = Buffer.from(hkdfSync('sha256', root, '', `muster/mac/${purpose}`, 32))
        subkeys.set(purpose, subkey)
      }
      return createHmac('sha256', subkey).update(data).digest()
    },

    async refresh() {
      const fresh = await read()
      if (JSON.stringify(fresh) === JSON.stringify(ring)) return
      ;({ ring, signers, signerByHeader } = signersOf(fresh))
      next_end_ms = 0
    },
  }
}

type RingSigner = { signer: Signer; sign_from_ms: number; verify_until_ms: number }

function signersOf(ring: Ring) {
  const signers = ring.keys.flatMap((key): RingSigner[] => {
    if (key.algorithm === 'hkdf-sha256') return []
    const signer = key.algorithm === 'ed25519' ? createEd25519Signer(key) : createHmacSigner(key)
    const { sign_from_ms = 0, verify_until_ms = Number.POSITIVE_INFINITY } = key
    return [{ signer, sign_from_ms, verify_until_ms }]
  })
  return { ring, signers, signerByHeader: new Map(signers.map((item) => [item.signer.header, item])) }
}

/** The same for the same moment, whenever it is asked: a token that is issued again is the same to the letter. */
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

/** Says nothing of the reason: it would only help whoever forges. */
function invalid(): ApiError {
  return new ApiError('TOKEN_INVALID')
}
