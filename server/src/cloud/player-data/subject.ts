// Who an export or an erasure is about: a player of one game, by identity, by address, or by both.
import { validationError } from '@musterhost/contract'
import { canonicalAddress, clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'

/** Seats of a player whose rays and lobbies are searched. */
const SEATS_MAX = 10_000
/** Namespaces of a game that are searched. */
const NAMESPACES_MAX = 10_000

export type PlayerNamed = { identity_id?: string; address?: string }

export type PlayerSubject = {
  game_id: string
  identity_id: string | null
  /** In its canonical form. */
  address: string | null
  /** The key by which seats name the address. */
  client_key: string | null
  namespace_ids: readonly string[]
  /** The newest seats. */
  player_ids: readonly string[]
  lobby_ids: readonly string[]
}

/** Throws VALIDATION_ERROR for a call that names nobody, and for a text that is no address. */
export function requireNamed({ identity_id, address }: PlayerNamed): {
  identity_id: string | null
  address: string | null
} {
  if (identity_id === undefined && address === undefined) {
    const message = 'Name the identity_id or the address of the player.'
    throw validationError([{ path: ['identity_id'], reason: 'required', message }])
  }
  const canonical = address === undefined ? null : canonicalAddress(address)
  if (address !== undefined && canonical === null) {
    const message = 'The address must be an IPv4 or IPv6 address, such as 203.0.113.7.'
    throw validationError([{ path: ['address'], reason: 'invalid', message }])
  }
  return { identity_id: identity_id ?? null, address: canonical }
}

/** Finds the namespaces of the game and the seats of the player. */
export async function findSubject(
  { db, pool }: Pick<Context, 'db' | 'pool'>,
  game_id: string,
  named: ReturnType<typeof requireNamed>,
): Promise<PlayerSubject> {
  const { identity_id, address } = named
  const client_key = address === null ? null : clientKey(address)
  const namespaces = await db
    .selectFrom('namespaces')
    .select('namespace_id')
    .where('game_id', '=', game_id)
    .limit(NAMESPACES_MAX)
    .execute()
  const namespace_ids = namespaces.map(({ namespace_id }) => namespace_id)
  const { rows } = await pool.query<{ player_id: string; lobby_id: string }>(
    `select player_id, lobby_id from players
      where namespace_id = any($1) and (identity_id = $2::uuid or client = $3::text)
      order by create_ts desc limit ${SEATS_MAX}`,
    [namespace_ids, identity_id, client_key],
  )
  return {
    ...{ game_id, identity_id, address, client_key, namespace_ids },
    player_ids: rows.map(({ player_id }) => player_id),
    lobby_ids: [...new Set(rows.map(({ lobby_id }) => lobby_id))],
  }
}

/**
 * A regular expression, for PostgreSQL and for JavaScript, that finds the identity and the address as a whole: 1.2.3.4 is not found
 * in 1.2.3.45.
 */
export function subjectPattern({ identity_id, address, client_key }: PlayerSubject): string {
  const names = [identity_id, address, client_key].filter((name) => name !== null)
  const escaped = [...new Set(names)].map((name) => name.replace(/[^0-9a-f-]/g, (character) => `\\${character}`))
  return `(^|[^0-9a-fA-F:.-])(${escaped.join('|')})($|[^0-9a-fA-F:.-])`
}

/** A name of the player that reveals nothing: only this platform can make it again. One for the identity, one for the address. */
export function subjectHashes(
  { keys }: Pick<Context, 'keys'>,
  game_id: string,
  { identity_id, address }: { identity_id: string | null; address: string | null },
): string[] {
  const hashOf = (text: string): string => keys.mac('erasure', `${game_id} ${text}`).toString('hex')
  return [
    ...(identity_id === null ? [] : [hashOf(`identity ${identity_id}`)]),
    ...(address === null ? [] : [hashOf(`client ${clientKey(address)}`)]),
  ]
}
