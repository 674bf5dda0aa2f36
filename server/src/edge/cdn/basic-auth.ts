// Sites that ask for a name and a password. A bcrypt hash is made to be slow, so it is computed away from the event loop
// (the library's threads), few at once, in a bounded queue of which one site gets a part, and for one source only so
// often. What was right is remembered by a keyed hash for a short time, together with the bcrypt hash it was right for:
// a password that is changed, or a user that is removed, is out at once.
import { createHmac, randomBytes } from 'node:crypto'
import { ApiError } from '@muster/contract'
import { verify } from '@node-rs/bcrypt'
import { createRateLimiter } from '../../addresses/rate-limit.ts'
import type { Context } from '../../context.ts'
import {
  AUTH_ATTEMPTS_BURST,
  AUTH_ATTEMPTS_PER_MINUTE,
  AUTH_CREDENTIALS_LENGTH_MAX,
  AUTH_REMEMBERED_MAX,
  AUTH_REMEMBERED_MS,
  AUTH_RUNNING_MAX,
  AUTH_SOURCES_MAX,
  AUTH_WAITING_MAX,
  AUTH_WAITING_PER_SITE_MAX,
} from '../limits.ts'

/** User names and their bcrypt hashes. */
export type AuthUsers = ReadonlyMap<string, string>

export type BasicAuth = {
  /**
   * Whether the Authorization header shows one of the users. Throws API_RATE_LIMIT when the source tries too often, and
   * API_NOT_AVAILABLE when too many passwords are waiting to be looked at.
   */
  isUser: (
    site: { namespace_id: string; users: AuthUsers },
    authorization: string | undefined,
    source: string,
  ) => boolean | Promise<boolean>
}

/** The same for whatever was wrong, and for all sites. */
export const CHALLENGE = ['www-authenticate', 'Basic realm="Muster site", charset="UTF-8"']

/** A name that does not exist takes as long as a wrong password: this much is computed for it, with a cost of the site's own. */
const NOBODY = ['$2b$', '$9bjU8Qx4wsB/yu8R8SaJpeqvG71nhFQAStqZPdE/bcGZ/gUiwgw76'] as const
const COST_DEFAULT = '10'

export function createBasicAuth(ctx: Context): BasicAuth {
  const secret = randomBytes(32)
  /** The oldest first. */
  const remembered = new Map<string, number>()
  const asked = new Map<string, Promise<boolean>>()
  const waiting: { namespace_id: string; start: () => void }[] = []
  let running = 0
  const limiter = createRateLimiter({
    per_minute: AUTH_ATTEMPTS_PER_MINUTE,
    burst: AUTH_ATTEMPTS_BURST,
    keys_max: AUTH_SOURCES_MAX,
  })

  async function turn(namespace_id: string): Promise<void> {
    if (running < AUTH_RUNNING_MAX) {
      running++
      return
    }
    const own = waiting.filter((item) => item.namespace_id === namespace_id).length
    if (waiting.length >= AUTH_WAITING_MAX || own >= AUTH_WAITING_PER_SITE_MAX) {
      throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    }
    await new Promise<void>((start) => waiting.push({ namespace_id, start }))
  }

  /** Whoever waits takes over the place. */
  function leave(): void {
    const next = waiting.shift()
    if (next === undefined) running--
    else next.start()
  }

  async function compute(namespace_id: string, password: string, hash: string): Promise<boolean> {
    await turn(namespace_id)
    try {
      return await verify(password, hash)
    } finally {
      leave()
    }
  }

  function remember(key: string): void {
    if (remembered.size >= AUTH_REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!)
    remembered.set(key, ctx.elapsed() + AUTH_REMEMBERED_MS)
  }

  return {
    isUser({ namespace_id, users }, authorization, source) {
      const shown = credentialsOf(authorization)
      if (shown === null) return false
      const known = users.get(shown.user)
      const hash = known ?? nobody(users, ctx.keys.mac('site-nobody', JSON.stringify([namespace_id, shown.user])))
      const key = createHmac('sha256', secret)
        .update(JSON.stringify([namespace_id, hash, shown.user, shown.password]))
        .digest('base64')
      const until_ms = remembered.get(key)
      if (until_ms !== undefined && ctx.elapsed() < until_ms) return true
      remembered.delete(key)
      // A page and all that it names come at once with the same credentials: one look for them all.
      const before = asked.get(key)
      if (before !== undefined) return before
      const wait_ms = limiter.take(`${namespace_id} ${source}`, ctx.elapsed())
      if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
      const asking = compute(namespace_id, shown.password, hash)
        .then((is_right) => {
          if (known === undefined || !is_right) return false
          remember(key)
          return true
        })
        .finally(() => asked.delete(key))
      asked.set(key, asking)
      return asking
    },
  }
}

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i
const CONTROL = /[\p{Cc}\ufffd]/u

/** RFC 7617; null for what is not that. */
function credentialsOf(authorization: string | undefined): { user: string; password: string } | null {
  if (authorization === undefined || authorization.length > AUTH_CREDENTIALS_LENGTH_MAX) return null
  const encoded = BASIC.exec(authorization)?.[1]
  if (encoded === undefined) return null
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon === -1 || CONTROL.test(text)) return null
  return { user: text.slice(0, colon), password: text.slice(colon + 1) }
}

/**
 * A hash that nobody's password has. Users may have hashes of different costs: one of these it has, always the same for a
 * name (`lot` is random, but the name's own), so that how long an answer takes says nothing of which names there are.
 */
export function nobody(users: AuthUsers, lot: Buffer): string {
  const costs = [...users.values()].map((hash) => hash.slice(4, 6))
  return NOBODY.join(costs[lot.readUInt32BE(0) % costs.length] ?? COST_DEFAULT)
}
