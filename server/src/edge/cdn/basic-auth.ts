// Sites that require a user name and a password. A bcrypt hash is slow by design, so it is computed on the library's threads,
// a few at once, in a bounded queue of which one site gets a part. One client may try only so often. A correct password is
// remembered for a short time by a keyed hash, together with the bcrypt hash it matched. So a changed password or a removed
// user takes effect at once.
import { createHmac, randomBytes } from 'node:crypto'
import { ApiError } from '@muster/contract'
import { verify } from '@node-rs/bcrypt'
import { createRateLimiter } from '../../addresses/rate-limit.ts'
import type { Context } from '../../context.ts'
import {
  AUTH_ATTEMPTS_BURST,
  AUTH_ATTEMPTS_PER_MINUTE,
  AUTH_CLIENTS_MAX,
  AUTH_CREDENTIALS_LENGTH_MAX,
  AUTH_REMEMBERED_MAX,
  AUTH_REMEMBERED_MS,
  AUTH_RUNNING_MAX,
  AUTH_WAITING_MAX,
  AUTH_WAITING_PER_SITE_MAX,
} from '../limits.ts'

/** User names and their bcrypt hashes. */
export type AuthUsers = ReadonlyMap<string, string>

export type BasicAuth = {
  /**
   * Returns whether the Authorization header names one of the users with its password. Throws API_RATE_LIMIT when the client
   * tries too often, and API_NOT_AVAILABLE when too many passwords wait for a check.
   */
  isUser: (
    site: { namespace_id: string; users: AuthUsers },
    authorization: string | undefined,
    client_key: string,
  ) => boolean | Promise<boolean>
}

/** The same for every failure, and for all sites. */
export const CHALLENGE = ['www-authenticate', 'Basic realm="Muster site", charset="UTF-8"']

/** A hash that no password has. It is checked for unknown names, so that they take as long as a wrong password. */
const DECOY = ['$2b$', '$9bjU8Qx4wsB/yu8R8SaJpeqvG71nhFQAStqZPdE/bcGZ/gUiwgw76'] as const
const COST_DEFAULT = '10'

export function createBasicAuth(ctx: Context): BasicAuth {
  const secret = randomBytes(32)
  /** Keys of correct passwords, the oldest first, and until when they count. */
  const remembered = new Map<string, number>()
  const checks = new Map<string, Promise<boolean>>()
  const waiting: { namespace_id: string; start: () => void }[] = []
  let running = 0
  const limiter = createRateLimiter({
    per_minute: AUTH_ATTEMPTS_PER_MINUTE,
    burst: AUTH_ATTEMPTS_BURST,
    keys_max: AUTH_CLIENTS_MAX,
  })

  async function start(namespace_id: string): Promise<void> {
    if (running < AUTH_RUNNING_MAX) {
      running++
      return
    }
    const own = waiting.filter((item) => item.namespace_id === namespace_id).length
    if (waiting.length >= AUTH_WAITING_MAX || own >= AUTH_WAITING_PER_SITE_MAX) {
      throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    }
    await new Promise<void>((resolve) => waiting.push({ namespace_id, start: resolve }))
  }

  /** Starts the next waiting check. */
  function finish(): void {
    const next = waiting.shift()
    if (next === undefined) running--
    else next.start()
  }

  async function compute(namespace_id: string, password: string, hash: string): Promise<boolean> {
    await start(namespace_id)
    try {
      return await verify(password, hash)
    } finally {
      finish()
    }
  }

  function remember(key: string): void {
    if (remembered.size >= AUTH_REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!)
    remembered.set(key, ctx.elapsed() + AUTH_REMEMBERED_MS)
  }

  return {
    isUser({ namespace_id, users }, authorization, client_key) {
      const credentials = credentialsOf(authorization)
      if (credentials === null) return false
      const { user, password } = credentials
      const known = users.get(user)
      const hash = known ?? decoyHash(users, ctx.keys.mac('site-nobody', JSON.stringify([namespace_id, user])))
      const key = createHmac('sha256', secret)
        .update(JSON.stringify([namespace_id, hash, user, password]))
        .digest('base64')
      const until_ms = remembered.get(key)
      if (until_ms !== undefined && ctx.elapsed() < until_ms) return true
      remembered.delete(key)
      // A page and its files are requested at once with the same credentials: they share one check.
      const running_check = checks.get(key)
      if (running_check !== undefined) return running_check
      const wait_ms = limiter.take(`${namespace_id} ${client_key}`, ctx.elapsed())
      if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
      const check = compute(namespace_id, password, hash)
        .then((is_right) => {
          if (known === undefined || !is_right) return false
          remember(key)
          return true
        })
        .finally(() => checks.delete(key))
      checks.set(key, check)
      return check
    },
  }
}

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i
const CONTROL = /[\p{Cc}\ufffd]/u

/** Reads RFC 7617; null for anything else. */
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
 * Returns the hash to check for an unknown name. Users may have hashes of different costs; this one has one of them, always
 * the same for a name. So the time of a response does not reveal which names exist. `seed`: pseudo-random, fixed per name.
 */
export function decoyHash(users: AuthUsers, seed: Buffer): string {
  const costs = [...users.values()].map((hash) => hash.slice(4, 6))
  return DECOY.join(costs[seed.readUInt32BE(0) % costs.length] ?? COST_DEFAULT)
}
