// Brings a database to the tables of this version. Forward only: each migration runs once, in a transaction of its
// own, and is remembered by name and checksum. Every step is taken under an advisory lock, so of several processes
// that start at once one migrates and the others wait. A database that ran something this version does not know
// belongs to a newer one and is not touched. This version works on it where the newer one only added, and is the next one.
import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Logger } from 'pino'
import { StartError } from '../config/start-error.ts'
import { WIRE_VERSION, workTogether } from '../wire/compatibility.ts'
import { isAdditive } from './additive.ts'
import { areFormer, type RanMigration, UNUSED_TABLES } from './former-migrations.ts'
import { BASELINE, MIGRATIONS, type Migration } from './migrations/index.ts'
import type { Schema } from './schema.ts'

/** An arbitrary constant. It separates this lock from those of other programs in the same database. */
const LOCK_KEY = '7365882110'
/** How long to wait for another process that migrates. */
const TURN_MS_MAX = 600_000
/** A migration waits this long for a table in use. All other statements queue behind it. */
const TABLE_LOCK_MS_MAX = 10_000

/**
 * Returns the names of the migrations that ran now, in order. Throws a StartError for a database of a newer
 * version or one whose past differs; what ran before the error stays.
 */
export async function migrate(
  db: Kysely<Schema>,
  log?: Logger,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<string[]> {
  const ran: string[] = []
  while (ran.length <= migrations.length) {
    const name = await db.transaction().execute((trx) => takeStep(trx, migrations, log))
    if (name === null) return ran
    ran.push(name)
  }
  throw new Error('More migrations ran than there are.')
}

/** Runs the first migration that is missing and returns its name; null when none is. */
async function takeStep(
  trx: Kysely<Schema>,
  migrations: readonly Migration[],
  log: Logger | undefined,
): Promise<string | null> {
  await set(trx, 'statement_timeout', 0)
  await set(trx, 'lock_timeout', TURN_MS_MAX)
  await sql`select pg_advisory_xact_lock(${LOCK_KEY}::bigint)`.execute(trx)
  await set(trx, 'lock_timeout', TABLE_LOCK_MS_MAX)

  const next = migrations[await countApplied(trx, migrations)]
  if (next === undefined) return null
  log?.info({ migration: next.name }, 'migrating the database')
  await sql.raw(next.statements).execute(trx)
  await sql`insert into migrations (name, checksum) values (${next.name}, ${checksum(next)})`.execute(trx)
  if (isAdditive(next.statements)) {
    await sql`insert into additive_migrations (name, wire_version) values (${next.name}, ${WIRE_VERSION})`.execute(trx)
  }
  return next.name
}

/** How many of the migrations, from the first on, the database has run. */
async function countApplied(trx: Kysely<Schema>, migrations: readonly Migration[]): Promise<number> {
  await sql`
    create table if not exists migrations (
      name text primary key,
      checksum text not null,
      create_ts timestamptz(3) not null default now()
    )`.execute(trx)
  await sql`
    create table if not exists additive_migrations (
      name text primary key,
      wire_version integer not null
    )`.execute(trx)
  let ran = await readMigrations(trx)
  if (areFormer(ran, 'The database')) {
    await replaceFormer(trx)
    ran = await readMigrations(trx)
  }
  const isKnown = ({ name }: { name: string }): boolean => migrations.some((migration) => migration.name === name)
  const added = ran.every(isKnown) ? [] : await addedByTheNext(trx)
  const unknown = ran.find((row) => !isKnown(row) && !added.includes(row.name))
  if (unknown) {
    throw new StartError(
      `The database was made by a newer version of Muster: it has run the migration ${unknown.name}, ` +
        'which this version does not know. Start that version again, or restore a backup from before the upgrade.',
    )
  }
  const known = ran.filter(isKnown)
  for (const [index, row] of known.entries()) {
    const migration = migrations[index]
    if (migration === undefined || migration.name !== row.name || checksum(migration) !== row.checksum) {
      throw new StartError(
        `The database has run another migration ${row.name} than the one of this version. ` +
          'Migrations never change once they are released; a database of an unreleased version must be made anew.',
      )
    }
  }
  return known.length
}

async function readMigrations(trx: Kysely<Schema>): Promise<RanMigration[]> {
  const { rows } = await sql<RanMigration>`
    select name, checksum from migrations order by name collate "C"`.execute(trx)
  return rows
}

/** The baseline counts as applied, because the former migrations have made its tables. */
async function replaceFormer(trx: Kysely<Schema>): Promise<void> {
  for (const name of UNUSED_TABLES) await trx.schema.dropTable(name).ifExists().execute()
  await sql`delete from additive_migrations`.execute(trx)
  await sql`delete from migrations`.execute(trx)
  await sql`insert into migrations (name, checksum) values (${BASELINE.name}, ${checksum(BASELINE)})`.execute(trx)
}

/** The migrations that this version may ignore. */
async function addedByTheNext(trx: Kysely<Schema>): Promise<string[]> {
  const { rows } = await sql<{ name: string; wire_version: number }>`
    select name, wire_version from additive_migrations`.execute(trx)
  return rows.filter(({ wire_version }) => workTogether(wire_version, WIRE_VERSION)).map(({ name }) => name)
}

async function set(trx: Kysely<Schema>, setting: string, value_ms: number): Promise<void> {
  await sql`select set_config(${setting}, ${String(value_ms)}, true)`.execute(trx)
}

/** Hex SHA-256 of the statements without their layout, so that reformatting the file changes nothing. */
export function checksum(migration: Migration): string {
  return createHash('sha256').update(migration.statements.replace(/\s+/g, ' ').trim()).digest('hex')
}
