// What the tests of the matchmaker's operations share: game modes, headers, and the codes that an operation documents.
import { randomUUID } from 'node:crypto'
import { ApiError, type ErrorCode, type Operation } from '@musterhost/contract'
import type { GameModes } from '../support/platform-verbs.ts'

export const UNKNOWN_ID = '0190163d-8694-739b-aea5-966c26f8ad91'
/** For lobbies that must not be stopped for want of players during a test of something else. */
export const LONG_MS = 3_600_000

export const withKey = (key: string = randomUUID()) => ({ headers: { 'idempotency-key': key } })
/** From another machine, for a platform that trusts the header of every client (TRUSTING). */
export const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
export const TRUSTING = { MUSTER_TRUSTED_PROXIES: '127.0.0.0/8' }

/** Game modes that between them can be refused in every documented way. */
export const MODES: GameModes = {
  default: { idle_grace_ms: LONG_MS },
  tagged: { idle_grace_ms: LONG_MS, taggable: true },
  sized: { idle_grace_ms: LONG_MS, allow_dynamic_max_players: true, max_players: 8 },
  nowhere: { actions: { create: { enabled: true, enable_public: true, enable_private: false } } },
  unfindable: { actions: { find: { enabled: false } } },
  unjoinable: { idle_grace_ms: LONG_MS, actions: { join: { enabled: false } } },
  unlisted: { idle_grace_ms: LONG_MS, listable: false },
  custom: {
    idle_grace_ms: LONG_MS,
    taggable: true,
    allow_dynamic_max_players: true,
    max_players: 8,
    actions: { create: { enabled: true, enable_public: true, enable_private: true } },
  },
  secret: { idle_grace_ms: LONG_MS, actions: { create: { enabled: true, enable_private: true } } },
}

/** How many of the calls were answered, and which refusals the others got. */
export async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const outcome of await Promise.allSettled(calls)) {
    const name = outcome.status === 'fulfilled' ? 'answered' : codeOf(outcome.reason)
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

function codeOf(reason: unknown): string {
  if (reason instanceof ApiError) return reason.code
  throw reason
}

/** What an operation documents and `shown` does not hold: a code that is added there wants a test here. */
export function unshown(operation: Operation, shown: readonly string[]): ErrorCode[] {
  return operation.errors.filter((code) => !shown.includes(code) && !SHOWN_ELSEWHERE.has(code))
}

/**
 * cloud/tiers.test.ts has regions that are full, backend.test.ts namespaces that are not the caller's,
 * matchmaker/captcha*.test.ts captchas, matchmaker/ports.test.ts ports that are all taken,
 * matchmaker/verification*.test.ts games that verify, hands.test.ts versions that drain. Also:
 * identity/guests.test.ts game modes that ask for an identity,
 * matchmaker/parties.test.ts parties, matchmaker/version-pin.test.ts versions that were replaced.
 */
const SHOWN_ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  'PARTY_NOT_FOUND',
  'PARTY_LEADER_REQUIRED',
  'MATCHMAKER_PARTY_TOO_LARGE',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'MATCHMAKER_VERSION_DRAINING',
  'MATCHMAKER_VERSION_REPLACED',
  'MATCHMAKER_IDENTITY_REQUIRED',
  'MATCHMAKER_REGISTRATION_REQUIRED',
  'MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED',
  'NAMESPACE_NOT_FOUND',
  'CAPTCHA_CAPTCHA_REQUIRED',
  'CAPTCHA_CAPTCHA_FAILED',
  'CAPTCHA_CAPTCHA_INVALID',
  'CAPTCHA_PROVIDER_FAILED',
  'MATCHMAKER_VERIFICATION_FAILED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
])

export const tooManyTags = (): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`tag${index}`, 'x']))
