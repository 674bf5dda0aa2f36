import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import { StartError } from '../../src/config/start-error.ts'
import { connect, type DatabaseConnection } from '../../src/database/connect.ts'
import { migrate } from '../../src/database/migrate.ts'
import { BASELINE, MIGRATIONS } from '../../src/database/migrations/index.ts'
import { createDatabase } from '../support/database.ts'
import { FORMER_MIGRATIONS, makeFormerDatabase } from './former-migrations.ts'
import { undoAfter } from './harness.ts'

const FIRST = { name: '0001-one', statements: 'create table one (n integer)' }
// It is slow, so that a caller that does not wait fails.
const SECOND = { name: '0002-second', statements: 'select pg_sleep(0.3); create table second (n integer)' }

test('of processes that migrate at once, one does it and the others wait', async (t) => {
  const url = await emptyDatabase(t)
  const migrations = [FIRST, SECOND]
  const ran = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const { db } = open(t, url)
      const names = await migrate(db, undefined, migrations)
      // Every caller finds all tables when it returns.
      await sql`select * from one, second`.execute(db)
      return names
    }),
  )
  assert.deepEqual(ran.flat().sort(), ['0001-one', '0002-second'])
  assert.deepEqual(await migrate(open(t, url).db, undefined, migrations), [])
})

test('the real migrations run on an empty database and do not run again', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  assert.deepEqual(
    await migrate(db),
    MIGRATIONS.map(({ name }) => name),
  )
  assert.deepEqual(await migrate(db), [])
  assert.deepEqual(await db.selectFrom('lobbies').selectAll().execute(), [])
})

test('a database of a newer version is refused and not touched', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  await migrate(db, undefined, [FIRST, { name: '0009-later', statements: 'alter table one rename to later' }])
  await assert.rejects(migrate(db, undefined, [FIRST, SECOND]), (error) => {
    return error instanceof StartError && /newer version of Muster.*0009-later/.test(error.message)
  })
  const { rows } = await sql`select to_regclass('second') as name`.execute(db)
  assert.deepEqual(rows, [{ name: null }])
})

test('the version before works on a database to which the next one only added', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  const added = { name: '9998-added', statements: 'alter table lobbies add column added text' }
  await migrate(db, undefined, [...MIGRATIONS, added])
  assert.deepEqual(await migrate(db), [])
  const changed = { name: '9999-changed', statements: 'alter table lobbies drop column added' }
  await migrate(db, undefined, [...MIGRATIONS, added, changed])
  await assert.rejects(migrate(db), /newer version of Muster.*9999-changed/)
})

test('a database that ran all migrations before the baseline is taken over with its rows', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  await makeFormerDatabase(db)
  const group_id = randomUUID()
  await db.insertInto('groups').values({ group_id, display_name: 'Kept' }).execute()
  assert.deepEqual(
    await migrate(db),
    MIGRATIONS.slice(1).map(({ name }) => name),
  )
  assert.deepEqual(await migrate(db), [])
  const { rows } = await sql`select name from migrations where name like '0%' order by name limit 1`.execute(db)
  assert.deepEqual(rows, [{ name: BASELINE.name }])
  assert.deepEqual(await db.selectFrom('groups').select('group_id').execute(), [{ group_id }])
  const { rows: unused } =
    await sql`select to_regclass('matchmaker_lease') as a, to_regclass('book_time') as b`.execute(db)
  assert.deepEqual(unused, [{ a: null, b: null }])
})

test('a database that ran only some migrations before the baseline is refused and not touched', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  await makeFormerDatabase(db, FORMER_MIGRATIONS.slice(0, -1))
  await assert.rejects(migrate(db), (error) => {
    return error instanceof StartError && /before the first release, whose last migration was 0099/.test(error.message)
  })
  const { rows } = await sql<{ count: number }>`select count(*)::integer as count from migrations`.execute(db)
  assert.equal(rows[0]!.count, FORMER_MIGRATIONS.length - 1)
})

test('a migration that was changed after it ran is refused; its layout may change', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  await migrate(db, undefined, [FIRST])
  await migrate(db, undefined, [{ ...FIRST, statements: '\n  create table  one (n integer)\n' }])
  const changed = { ...FIRST, statements: 'create table one (n bigint)' }
  await assert.rejects(migrate(db, undefined, [changed]), StartError)
})

test('a migration that fails leaves nothing of itself, and what ran before it', async (t) => {
  const { db } = open(t, await emptyDatabase(t))
  const failing = { name: '0002-failing', statements: 'create table half (n integer); select 1 / 0' }
  await assert.rejects(migrate(db, undefined, [FIRST, failing]), { code: '22012' })
  const { rows } = await sql`select to_regclass('one') is not null as one, to_regclass('half') as half`.execute(db)
  assert.deepEqual(rows, [{ one: true, half: null }])
  assert.deepEqual(await migrate(db, undefined, [FIRST, SECOND]), ['0002-second'])
})

test('a connection that migrated has its own limits again', async (t) => {
  const { db } = open(t, await emptyDatabase(t), 1)
  const before = await sql`select current_setting('statement_timeout') as limit`.execute(db)
  await migrate(db, undefined, [FIRST])
  const after = await sql`select current_setting('statement_timeout') as limit`.execute(db)
  assert.deepEqual(after.rows, before.rows)
})

function open(t: TestContext, url: string, connections_max = 2): DatabaseConnection {
  const connection = connect({ url, application_name: 'muster-test', connections_max })
  undoAfter(t, connection.close)
  return connection
}

async function emptyDatabase(t: TestContext): Promise<string> {
  const url = await createDatabase(t)
  const { db } = open(t, url)
  await sql`drop schema public cascade`.execute(db)
  await sql`create schema public`.execute(db)
  return url
}
