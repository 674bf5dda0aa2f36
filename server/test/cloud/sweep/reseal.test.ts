// After a rotation of the seals every sealed column is closed with the new key, while certificates are renewed beside it
// and though the sweep fails on the way.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { resealAll } from '../../../src/cloud/sweep/reseal.ts'
import { rotateSeals, SPREAD_MS } from '../../../src/tokens/ring.ts'
import { ACME_ACCOUNT_KEYS, CERTIFICATE_KEYS, SEALED_COLUMNS } from '../../../src/tokens/sealed-columns.ts'
import { startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'

/** More than the sweep reads at once. */
const CERTIFICATE_COUNT = 1_100
const DIRECTORY = 'https://acme.example/directory'
const CAPTCHA = {
  requests_before_reverify: 10,
  verification_ttl: 240_000,
  turnstile: { site_key: 'b', secret_key: 'c' },
}

test('a rotation reaches every secret, goes on where it was broken off, and undoes no renewal', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx } = platform
  await platform.game({ matchmaker: { game_modes: { default: {} }, captcha: CAPTCHA } })
  const now = new Date(ctx.now())
  const hosts = Array.from({ length: CERTIFICATE_COUNT }, (_, index) => `h${String(index).padStart(4, '0')}.example`)
  const seal = (host: string, text: string): string => ctx.seals.seal(CERTIFICATE_KEYS.purposeOf(host), text, ctx.now())
  const rows = hosts.map((host) => ({ host, wish_ts: now, next_ts: now, private_key: seal(host, `key of ${host}`) }))
  await ctx.db.insertInto('certificates').values(rows).execute()
  await ctx.db
    .insertInto('acme_accounts')
    .values({
      directory_url: DIRECTORY,
      private_key: ctx.seals.seal(ACME_ACCOUNT_KEYS.purposeOf(DIRECTORY), 'account', ctx.now()),
    })
    .execute()
  // Of a key that is lost: it is the first of all.
  const lost = `s1.0123456789ab.${'A'.repeat(60)}`
  await ctx.db
    .insertInto('certificates')
    .values({ host: 'a.example', wish_ts: now, next_ts: now, private_key: lost })
    .execute()

  const old_prefix = ctx.seals.prefix(ctx.now())
  /** How many are closed with the old key; each opens for what it is for. */
  const countOld = async (): Promise<number> => {
    let count = 0
    for (const { table, id, column, purposeOf } of SEALED_COLUMNS) {
      const sealed = await sql<{ id: string; seal: string }>`
        select ${sql.ref(id)}::text as id, ${sql.ref(column)} as seal from ${sql.table(table)}
        where ${sql.ref(column)} is not null and ${sql.ref(column)} <> ${lost}`.execute(ctx.db)
      for (const row of sealed.rows) {
        assert.ok(ctx.seals.open(purposeOf(row.id), row.seal).length > 0)
        if (row.seal.startsWith(old_prefix)) count++
      }
    }
    return count
  }
  const all = CERTIFICATE_COUNT + 2
  assert.equal(await countOld(), all)
  await rotateSeals(join(platform.data_dir, 'keys'), { now_ms: ctx.now() })
  await ctx.seals.refresh()
  assert.equal(await resealAll(ctx), 0, 'not before every process knows the key')
  platform.advance(SPREAD_MS)

  // One row is held by somebody else: the sweep waits for that row, and then loses its statement.
  const [held, renewed] = [hosts[600]!, hosts[700]!]
  const holding = await ctx.db.startTransaction().execute()
  await holding.selectFrom('certificates').select('host').where('host', '=', held).forUpdate().execute()
  const sweeping = resealAll(ctx)
  let waiting = 0
  await until('the sweep to wait', async () => {
    const found = await sql<{ pid: number }>`
      select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and query like 'update "certificates"%'`.execute(ctx.db)
    waiting = found.rows[0]?.pid ?? 0
    return waiting !== 0
  })
  const left = await countOld()
  assert.ok(left > 0 && left < all, `${left} are left`)
  const fresh = seal(renewed, 'a renewed key')
  await ctx.db.updateTable('certificates').set({ private_key: fresh }).where('host', '=', renewed).execute()
  await sql`select pg_cancel_backend(${waiting})`.execute(ctx.db)
  const count = await sweeping
  await holding.rollback().execute()
  assert.equal(count, all - 2, 'all but the one that failed and the one that was renewed')
  assert.equal(await countOld(), 1)

  assert.equal(await resealAll(ctx), 1)
  assert.equal(await countOld(), 0)
  assert.equal(await resealAll(ctx), 0, 'once is enough')
  const keyOf = async (host: string): Promise<string | null | undefined> =>
    (await ctx.db.selectFrom('certificates').select('private_key').where('host', '=', host).executeTakeFirst())
      ?.private_key
  assert.equal(await keyOf(renewed), fresh)
  assert.equal(await keyOf('a.example'), lost, 'what cannot be opened stays as it was')
  assert.equal(ctx.seals.open(CERTIFICATE_KEYS.purposeOf(held), (await keyOf(held))!), `key of ${held}`)
})
