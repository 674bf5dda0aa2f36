// Sites that require a user name and a password. A bcrypt hash is slow by design, so it is computed on the library's threads,
// a few at once, in a bounded queue of which one site gets a part. One client may try only so often. A correct password is
// remembered for a short time by a keyed hash, together with the bcrypt hash it matched. So a changed password or a removed
// user takes effect at once.
import { createHmac, randomBytes } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import { verify } from '@node-rs/bcrypt'
import { createRateLimiter } from '../../addresses/rate-limit.ts'
import type { Context } from '../../context.ts'
import { BoundedMap } from '../../flow/bounded-map.ts'
import { Semaphore } from '../../flow/semaphore.ts'
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

/** The same for every failure, and for all sites. */
export const CHALLENGE = ['www-authenticate', 'Basic realm="Muster site", charset="UTF-8"']

/** A hash that no password has. It is checked for unknown names, so that they take as long as a wrong password. */
const DECOY = ['$2b$', '$9bjU8Qx4wsB/yu8R8SaJpeqvG71nhFQAStqZPdE/bcGZ/gUiwgw76'] as const
const COST_DEFAULT = '10'

export class BasicAuth {
  readonly #ctx: Context
  readonly #secret = randomBytes(32)
  /** Keys of correct passwords, the oldest first, and until when they count. */
  readonly #remembered = new BoundedMap<string, number>(AUTH_REMEMBERED_MAX)
  readonly #checks = new Map<string, Promise<boolean>>()
  readonly #semaphore = new Semaphore({ at_once_max: AUTH_RUNNING_MAX, waiting_max: AUTH_WAITING_MAX })
  /** By namespace: the passwords that wait for a check. */
  readonly #waiting = new Map<string, number>()
  readonly #limiter: ReturnType<typeof createRateLimiter>

  constructor(ctx: Context) {
    this.#ctx = ctx
    // Each edge process of the machine has a part: a password is checked once by each.
    const { count } = ctx.config.process
    this.#limiter = createRateLimiter({
      per_minute: Math.ceil(AUTH_ATTEMPTS_PER_MINUTE / count),
      burst: Math.ceil(AUTH_ATTEMPTS_BURST / count),
      keys_max: AUTH_CLIENTS_MAX,
    })
  }

  /**
   * Returns whether the Authorization header names one of the users with its password. Throws API_RATE_LIMIT when the client
   * tries too often, and API_NOT_AVAILABLE when too many passwords wait for a check.
   */
  isUser(
    { namespace_id, users }: { namespace_id: string; users: AuthUsers },
    authorization: string | undefined,
    client_key: string,
  ): boolean | Promise<boolean> {
    const credentials = credentialsOf(authorization)
    if (credentials === null) return false
    const { user, password } = credentials
    const known = users.get(user)
    const hash = known ?? decoyHash(users, this.#ctx.keys.mac('site-nobody', JSON.stringify([namespace_id, user])))
    const key = createHmac('sha256', this.#secret)
      .update(JSON.stringify([namespace_id, hash, user, password]))
      .digest('base64')
    const until_ms = this.#remembered.get(key)
    if (until_ms !== undefined && this.#ctx.elapsed() < until_ms) return true
    this.#remembered.delete(key)
    // A page and its files are requested at once with the same credentials: they share one check.
    const running_check = this.#checks.get(key)
    if (running_check !== undefined) return running_check
    const wait_ms = this.#limiter.take(`${namespace_id} ${client_key}`, this.#ctx.elapsed())
    if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
    const check = this.#check(namespace_id, password, hash)
      .then((is_right) => {
        if (known === undefined || !is_right) return false
        this.#remembered.set(key, this.#ctx.elapsed() + AUTH_REMEMBERED_MS)
        return true
      })
      .finally(() => this.#checks.delete(key))
    this.#checks.set(key, check)
    return check
  }

  async #check(namespace_id: string, password: string, hash: string): Promise<boolean> {
    await this.#start(namespace_id)
    try {
      return await verify(password, hash)
    } finally {
      this.#semaphore.release()
    }
  }

  /** Waits until a check may run. */
  async #start(namespace_id: string): Promise<void> {
    const is_waiting = !this.#semaphore.has_free_slot
    if (is_waiting) this.#countWaiting(namespace_id, 1)
    const outcome = await this.#semaphore.acquire()
    if (is_waiting) this.#countWaiting(namespace_id, -1)
    if (outcome !== 'acquired') throw notAvailable()
  }

  /** Throws API_NOT_AVAILABLE when too many of the site wait. */
  #countWaiting(namespace_id: string, step: 1 | -1): void {
    const count = (this.#waiting.get(namespace_id) ?? 0) + step
    if (count > AUTH_WAITING_PER_SITE_MAX) throw notAvailable()
    if (count > 0) this.#waiting.set(namespace_id, count)
    else this.#waiting.delete(namespace_id)
  }
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
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
