// The migrations that a database had run when it was backed up, against those of this version: the same from the first
// on, or we do not know what its tables are.
import { StartError } from '../config/start-error.ts'
import { areFormer, type RanMigration } from '../database/former-migrations.ts'
import { checksum } from '../database/migrate.ts'
import { BASELINE, MIGRATIONS, type Migration } from '../database/migrations/index.ts'

/** The migrations of this version that make the tables of `ran`. Throws a StartError when they do not. */
export function knownMigrations(ran: readonly RanMigration[]): readonly Migration[] {
  if (areFormer(ran, 'The backup')) return [BASELINE]
  const unknown = ran.find(({ name }) => !MIGRATIONS.some((migration) => migration.name === name))
  if (unknown) {
    throw new StartError(
      `It was made by a newer version of Muster, which has the migration ${unknown.name}; use that version.`,
    )
  }
  const other = ran.find(({ name, checksum: sum }, index) => {
    const ours = MIGRATIONS[index]
    return ours === undefined || ours.name !== name || checksum(ours) !== sum
  })
  if (other) {
    throw new StartError(
      `It has run another migration ${other.name} than the one of this version, as databases of unreleased versions have.`,
    )
  }
  return MIGRATIONS.slice(0, ran.length)
}
