// Codes with which players join a lobby: six letters that are easy to read aloud. A code is short, so wrong codes are limited for
// each client. A client that guesses learns nothing more while its limit is reached.
import { randomInt } from 'node:crypto'
import { ApiError, type BodyOf, type joinLobby, validationError } from '@musterhost/contract'
import { createClientRateLimiter } from '../../addresses/client-rate.ts'
import type { RateLimiter } from '../../addresses/rate-limit.ts'
import type { MatchmakerContext } from './context.ts'
import type { Requester } from './requester.ts'

/** No vowels, so that no words are made, and no letters that look like digits. */
const CODE_LETTERS = 'BCDFGHJKMNPQRSTVWXYZ'
const CODE_LENGTH = 6
/** Codes that are tried for one lobby. */
const TRIES_MAX = 8
/** Wrong codes of one client at once, and per minute from then on. */
const WRONG_CODES_MAX = 20
const WRONG_CODES_PER_MINUTE = 2
/** Clients with wrong codes that are remembered, of each size of network. */
const CLIENTS_MAX = 50_000

export function createWrongCodes(): RateLimiter {
  const [per_minute, burst] = [WRONG_CODES_PER_MINUTE, WRONG_CODES_MAX]
  return createClientRateLimiter({ per_minute, burst, keys_max: CLIENTS_MAX })
}

/** A code that no lobby of the namespace has. The book checks it again when the lobby is created. */
export function newLobbyCode({ books }: MatchmakerContext, namespace_id: string): string {
  const codes = books.book(namespace_id)?.lobby_codes
  let code = randomCode()
  for (let tries = 1; tries < TRIES_MAX && codes?.has(code) === true; tries++) code = randomCode()
  return code
}

/**
 * The lobby that a join names by its id or by its code. Throws VALIDATION_ERROR unless it has one of them,
 * MATCHMAKER_LOBBY_CODE_INVALID, and API_RATE_LIMIT after too many wrong codes.
 */
export function joinedLobbyId(ctx: MatchmakerContext, requester: Requester, body: BodyOf<typeof joinLobby>): string {
  const { lobby_id, code } = body
  if (code === undefined && lobby_id !== undefined) return lobby_id
  if (code === undefined || lobby_id !== undefined) {
    const message = 'A join has either lobby_id or code.'
    throw validationError([{ path: ['lobby_id'], reason: code === undefined ? 'required' : 'not_allowed', message }])
  }
  const { namespace_id, client_key } = requester
  const now_ms = ctx.elapsed()
  const wait_ms = ctx.wrong_codes.waitMs(client_key, now_ms)
  if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
  const lobby = ctx.books.book(namespace_id)?.lobby_codes.get(code.trim().toUpperCase())
  if (lobby !== undefined) return lobby.lobby_id
  ctx.wrong_codes.take(client_key, now_ms)
  throw new ApiError('MATCHMAKER_LOBBY_CODE_INVALID')
}

function randomCode(): string {
  return Array.from({ length: CODE_LENGTH }, () => CODE_LETTERS.charAt(randomInt(CODE_LETTERS.length))).join('')
}
