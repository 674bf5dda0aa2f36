// The fuzzing of tokens: parts of valid tokens are changed, exchanged, cut and signed with other keys. The law: nothing is
// accepted but what was issued, letter for letter.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { ApiError } from '@musterhost/contract'
import fc from 'fast-check'
import { encodeClaims, KINDS, type Subject, type Token } from '../../src/tokens/claims.ts'
import { type Keys, keysOf } from '../../src/tokens/keys.ts'
import { createRing, type Ring } from '../../src/tokens/ring.ts'
import { createEd25519Signer, createHmacSigner, type Signer } from '../../src/tokens/signer.ts'
import { type Campaign, examineAll, literal } from './campaign.ts'

const NOW_MS = 1_790_000_000_000
const LIFETIME_MS = 60_000
const ID = '0190a0b0-1234-7abc-8def-0123456789ab'
const OTHER_ID = '0190a0b0-1234-7abc-8def-0123456789ac'

const SUBJECTS: readonly Subject[] = [
  { kind: 'access', name: 'admin' },
  { kind: 'user', user_id: ID, session_id: OTHER_ID },
  { kind: 'device', device_link_id: ID },
  { kind: 'cloud', game_id: ID },
  { kind: 'public', namespace_id: ID },
  { kind: 'lobby', lobby_id: ID, namespace_id: OTHER_ID },
  { kind: 'player', player_id: ID, lobby_id: OTHER_ID, namespace_id: OTHER_ID },
  { kind: 'player', player_id: ID, lobby_id: OTHER_ID, namespace_id: OTHER_ID, role: 'spectator' },
  {
    kind: 'development',
    ...{ namespace_id: ID, hostname: 'localhost' },
    ports: [{ name: 'game', protocol: 'udp', port: null, port_range: { min: 26_000, max: 26_010 } }],
  },
  { kind: 'dev_player', namespace_id: ID, player_id: OTHER_ID },
  { kind: 'game_user', identity_id: ID, namespace_id: OTHER_ID },
]

/** How a forgery is made of the tokens at two places of a list, in steps. */
type Step =
  /** A part of the first becomes that of the second. */
  | { how: 'exchange'; part: number }
  /** A bit of what a part encodes, or of its text. */
  | { how: 'flip'; part: number; bit: number; is_encoded: boolean }
  | { how: 'cut'; from: number; length: number }
  | { how: 'insert'; at: number; text: string }
  | { how: 'spell'; part: number; as: 'upper' | 'lower' | 'padded' | 'base64' | 'doubled' }
  /** Signed with a key: of the platform's ring or of another one, of the first's kind or of the other algorithm. */
  | { how: 'sign'; is_own: boolean; is_same_algorithm: boolean }
type Forgery = { first: number; second: number; is_foreign: boolean; steps: Step[] }

const PARTS = 4
const part = fc.nat(PARTS - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ how: fc.constant('exchange' as const), part }),
  fc.record({ how: fc.constant('flip' as const), part, bit: fc.nat(4_000), is_encoded: fc.boolean() }),
  fc.record({ how: fc.constant('cut' as const), from: fc.nat(400), length: fc.oneof(fc.constant(1), fc.nat(400)) }),
  fc.record({
    how: fc.constant('insert' as const),
    at: fc.nat(400),
    text: fc.oneof(
      fc.constantFrom('.', '=', ' ', '\n', '\0', 'A', '_', '\u00e9', '..', '\u200b'),
      fc.string({ minLength: 1, maxLength: 3 }),
    ),
  }),
  fc.record({
    how: fc.constant('spell' as const),
    part,
    as: fc.constantFrom('upper' as const, 'lower' as const, 'padded' as const, 'base64' as const, 'doubled' as const),
  }),
  fc.record({ how: fc.constant('sign' as const), is_own: fc.constant(false), is_same_algorithm: fc.boolean() }),
)
const forgeries: fc.Arbitrary<Forgery> = fc.record({
  first: fc.nat(SUBJECTS.length - 1),
  second: fc.nat(SUBJECTS.length - 1),
  is_foreign: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  steps: fc.array(step, { maxLength: 4 }),
})

/** A ring with its keys, and a token of each kind. */
type Platform = { keys: Keys; tokens: string[]; signers: { ed25519: Signer; hmac: Signer } }

export async function fuzzTokens(t: TestContext, campaign: Campaign): Promise<void> {
  const own = createPlatform()
  const foreign = createPlatform()
  const issued = new Set(own.tokens)
  let forged = 0
  const examine = async (forgery: Forgery) => {
    const text = forge(forgery, own, foreign)
    const token = verified(own.keys, text)
    if (issued.has(text)) return assert.ok(token !== null, 'a token that was issued is refused')
    forged++
    assert.equal(token, null, `${text} is accepted as ${JSON.stringify(token)}`)
    // What is remembered of the valid ones is theirs alone.
    assert.ok(verified(own.keys, own.tokens[forgery.first]!) !== null)
  }
  const stop = new AbortController()
  await examineAll({ cases: forgeries, examine, toTest, stop }, campaign)
  await examineClaims(own, campaign)
  t.diagnostic(`seed ${campaign.seed}: ${forged} forged or changed tokens, none accepted`)
  assert.ok(forged > 0)
}

/** One forgery, for a test that keeps what was found. */
export async function examineForgery(forgery: Forgery): Promise<void> {
  const own = createPlatform()
  const text = forge(forgery, own, createPlatform())
  if (!own.tokens.includes(text)) assert.equal(verified(own.keys, text), null)
}

function toTest(forgery: Forgery): string {
  return `test('PROMISE', () => examineForgery(${literal(forgery)}))`
}

function createPlatform(): Platform {
  const ring = createRing()
  const keys = keysOf(ring)
  const issue = (subject: Subject) => keys.issue(subject, { now_ms: NOW_MS, lifetime_ms: LIFETIME_MS, name: 'prod' })
  return { keys, tokens: SUBJECTS.map(issue), signers: signersOf(ring) }
}

function signersOf({ keys }: Ring): Platform['signers'] {
  const [ed25519, hmac] = (['ed25519', 'hmac-sha256'] as const).map(
    (algorithm) => keys.find((key) => key.algorithm === algorithm)!,
  )
  return { ed25519: createEd25519Signer(ed25519!), hmac: createHmacSigner(hmac!) }
}

/** Null: it is refused. Any other error than a refusal is a fault. */
function verified(keys: Keys, text: string): Token | null {
  try {
    return keys.verify(text, NOW_MS)
  } catch (error) {
    if (error instanceof ApiError && (error.code === 'TOKEN_INVALID' || error.code === 'TOKEN_EXPIRED')) return null
    throw error
  }
}

function forge({ first, second, is_foreign, steps }: Forgery, own: Platform, foreign: Platform): string {
  const other = (is_foreign ? foreign : own).tokens[second]!
  return steps.reduce((text, step) => take(step, text, other, own, foreign), own.tokens[first]!)
}

function take(step: Step, text: string, other: string, own: Platform, foreign: Platform): string {
  const parts = text.split('.')
  if (step.how === 'cut') return text.slice(0, step.from) + text.slice(step.from + step.length)
  if (step.how === 'insert') return text.slice(0, step.at) + step.text + text.slice(step.at)
  if (step.how === 'sign') {
    const { ed25519, hmac } = (step.is_own ? own : foreign).signers
    const is_hmac = parts[1] === own.signers.hmac.header
    const signer = is_hmac === step.is_same_algorithm ? hmac : ed25519
    // The header stays that of the platform's key: what a token says of itself is not obeyed.
    const signed = parts.slice(0, PARTS - 1).join('.')
    return `${signed}.${signer.sign(signed)}`
  }
  const old = parts[step.part] ?? ''
  if (step.how === 'exchange') return parts.with(step.part % parts.length, other.split('.')[step.part] ?? '').join('.')
  if (step.how === 'flip') return parts.with(step.part % parts.length, flipped(old, step)).join('.')
  const spellings = {
    upper: old.toUpperCase(),
    lower: old.toLowerCase(),
    padded: `${old}=`,
    base64: old.replaceAll('-', '+').replaceAll('_', '/'),
    doubled: `${old}.${old}`,
  }
  return parts.with(step.part % parts.length, spellings[step.as]).join('.')
}

function flipped(text: string, { bit, is_encoded }: { bit: number; is_encoded: boolean }): string {
  const bytes = is_encoded ? Buffer.from(text, 'base64url') : Buffer.from(text, 'latin1')
  if (bytes.length === 0) return text
  const at = (bit >> 3) % bytes.length
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (bit & 7)), at)
  return bytes.toString(is_encoded ? 'base64url' : 'latin1')
}

/** Claims that the platform's own keys have signed are still none, unless they are written as encodeClaims writes them. */
type Crafted = { subject: number; label: number; is_hmac: boolean; flips: number[] }
const crafted: fc.Arbitrary<Crafted> = fc.record({
  subject: fc.nat(SUBJECTS.length - 1),
  label: fc.nat(SUBJECTS.length - 1),
  is_hmac: fc.boolean(),
  flips: fc.array(fc.nat(4_000), { maxLength: 3 }),
})

async function examineClaims({ keys, tokens, signers }: Platform, campaign: Campaign): Promise<void> {
  const examine = async ({ subject, label, is_hmac, flips }: Crafted) => {
    const [, , claims = ''] = tokens[subject]!.split('.')
    const changed = flips.reduce((text, bit) => flipped(text, { bit, is_encoded: true }), claims)
    const signer = is_hmac ? signers.hmac : signers.ed25519
    const signed = `${tokens[label]!.split('.')[0]}.${signer.header}.${changed}`
    const token = verified(keys, `${signed}.${signer.sign(signed)}`)
    if (token === null) return
    assert.equal(encodeClaims(token).toString('base64url'), changed, 'claims with two spellings')
    const { algorithm, label: own_label } = KINDS[token.kind]
    assert.equal(algorithm, signer.algorithm, `a key of another algorithm speaks for ${token.kind}`)
    assert.ok(signed.startsWith(own_label), `${signed} is accepted as ${token.kind}`)
  }
  const toCraftedTest = (item: Crafted) => `signed by the platform's own keys: ${literal(item)}`
  await examineAll({ cases: crafted, examine, toTest: toCraftedTest, stop: new AbortController() }, campaign)
}
