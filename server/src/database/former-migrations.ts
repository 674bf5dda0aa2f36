// The tables of the first release were made step by step before it. A database or a backup that ran all of these steps has the
// tables of the baseline. An older one is refused.
import { createHash } from 'node:crypto'
import { StartError } from '../config/start-error.ts'

/** A migration that a database ran. `checksum`: hex SHA-256 of its statements. */
export type RanMigration = { name: string; checksum: string }

const FIRST = '0001-first'
/** Hex SHA-256 of the names and checksums of all of them, a line each. */
const ALL_SHA256 = '334909a48aaf9204fdec0fd6d5e2d346b9a649793b1bf53fa4d4bc68941542c9'

/** Tables of the former migrations that nothing uses. */
export const UNUSED_TABLES = ['matchmaker_lease', 'book_time'] as const

/**
 * `ran`: in the order of their names. `owner`: begins the error. Returns whether they are the former migrations. Throws a
 * StartError when some of them are missing.
 */
export function areFormer(ran: readonly RanMigration[], owner: 'The database' | 'The backup'): boolean {
  if (ran[0]?.name !== FIRST) return false
  const lines = ran.map(({ name, checksum }) => `${name} ${checksum}`).join('\n')
  if (createHash('sha256').update(lines).digest('hex') === ALL_SHA256) return true
  throw new StartError(
    `${owner} is of a version before the first release, whose last migration was ${ran.at(-1)!.name}. This version takes it ` +
      'over only after 0100-game-secrets. Run the last version before the first release on it, and then this one.',
  )
}
