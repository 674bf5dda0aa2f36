import assert from 'node:assert/strict'
import test from 'node:test'
import { OLD_ROWS } from '../../../src/cloud/sweep/retention.ts'
import { sweep } from '../../../src/cloud/sweep/sweep.ts'
import { revokeById } from '../../../src/cloud/tokens/tokens.ts'
import { audited } from '../../support/audited.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { newGame } from '../steps.ts'

const DAY_MS = 24 * 3_600_000
/** Longer than a cloud token lives, and all that is kept of it. */
const LONG_MS = 400 * DAY_MS

/** A row of everything that ends, ended now; and a job that failed for the last time, long ago. */
async function fill({ ctx }: Platform, game_id: string): Promise<void> {
  // The cloud token that the game was made with.
  const { token_id } = await ctx.db.selectFrom('tokens').select('token_id').executeTakeFirstOrThrow()
  await revokeById(audited(ctx), token_id)
  const now = new Date(ctx.now())
  await ctx.pool.query(`insert into users values (gen_random_uuid(), 'a@example.com', null, 'a')`)
  await ctx.pool.query(
    `insert into user_sessions (session_id, user_id, create_ts, refresh_ts, expire_ts, end_ts)
      select gen_random_uuid(), user_id, $1::timestamptz, $1, $1::timestamptz + interval '900 days', $1 from users
      union all select gen_random_uuid(), user_id, $1, $1, $1, null from users`,
    [now],
  )
  await ctx.pool.query(`insert into email_verifications values (gen_random_uuid(), 'a', 'c', '', 0, $1, $1)`, [now])
  await ctx.pool.query('insert into device_links values (gen_random_uuid(), $1, $2)', [game_id, now])
  await ctx.pool.query(
    `insert into group_invites select 'a', developer_group_id, 'developer', 0, 1, $2, $2 from games where game_id = $1`,
    [game_id, now],
  )
  await ctx.pool.query(
    `insert into rating_results select gen_random_uuid(), 'm', namespace_id, '', '', $2 from namespaces where game_id = $1 limit 1`,
    [game_id, now],
  )
  await ctx.pool.query(
    `with target as (
        insert into notice_targets (target_id, game_id, name, kind, secrets, settings)
        values (gen_random_uuid(), $1, 'old', 'email', '', '{"events":[],"by_admin":true}') returning target_id
      )
      insert into notices (notice_id, target_id, source, event, notice, create_ts, state, end_ts)
      select gen_random_uuid(), target_id, 's', 'test', '{}', $2, 'delivered', $2 from target`,
    [game_id, now],
  )
  await ctx.pool.query(
    `select graphile_worker.add_job('nothing', max_attempts := 1, run_at := now() + interval '1 day')`,
  )
  await ctx.pool.query(
    `update graphile_worker._private_jobs set attempts = 1, updated_at = now() - interval '100 days'`,
  )
}

async function countsOf({ ctx }: Platform): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of [...OLD_ROWS.map((rows) => rows.table), 'graphile_worker._private_jobs']) {
    const { rows } = await ctx.pool.query(`select count(*)::integer as count from ${table}`)
    counts[table] = rows[0].count
  }
  return counts
}

const FULL = {
  audit_events: 4,
  tokens: 1,
  revoked_tokens: 1,
  user_sessions: 2,
  email_verifications: 1,
  device_links: 1,
  group_invites: 1,
  rating_results: 1,
  notices: 1,
  'graphile_worker._private_jobs': 1,
}

test('what is over is removed after its time, and not before', async (t) => {
  const platform = await startPlatform(t, { roles: 'api', env: { MUSTER_RETENTION_JOBS_DAYS: '101' } })
  const { game_id } = await newGame(platform)
  await fill(platform, game_id)
  await revokeById(audited(platform.ctx), '00000000-0000-7000-8000-000000000001')
  await sweep(platform.ctx)
  assert.deepEqual(await countsOf(platform), { ...FULL, revoked_tokens: 2, audit_events: 5 })
  await platform.ctx.pool.query(`update graphile_worker._private_jobs set updated_at = updated_at - interval '2 days'`)
  platform.advance(LONG_MS)
  await sweep(platform.ctx)
  const none = Object.fromEntries(Object.keys(FULL).map((table) => [table, 0]))
  // A token whose end is not known is kept, for when it may be forgotten is not known either.
  assert.deepEqual(await countsOf(platform), { ...none, revoked_tokens: 1 })
})

test('where nothing is to be removed nothing is', async (t) => {
  const names = [
    'AUDIT_DAYS',
    'TOKENS_DAYS',
    'SESSIONS_DAYS',
    'LOGIN_CODES_HOURS',
    'DEVICE_LINKS_HOURS',
    'INVITES_DAYS',
    'JOBS_DAYS',
    'RESULTS_DAYS',
    'NOTICES_DAYS',
  ]
  const env = Object.fromEntries(names.map((name) => [`MUSTER_RETENTION_${name}`, '0']))
  const platform = await startPlatform(t, { roles: 'api', env })
  const { game_id } = await newGame(platform)
  await fill(platform, game_id)
  platform.advance(LONG_MS)
  await sweep(platform.ctx)
  assert.deepEqual(await countsOf(platform), FULL)
})

test('a step that fails does not keep the others from their work, and is made again', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { game_id } = await newGame(platform)
  await fill(platform, game_id)
  platform.advance(LONG_MS)
  await platform.ctx.pool.query('alter table tokens rename to away')
  await sweep(platform.ctx)
  await platform.ctx.pool.query('alter table away rename to tokens')
  const { tokens, group_invites } = await countsOf(platform)
  assert.deepEqual({ tokens, group_invites }, { tokens: 1, group_invites: 0 })
  await sweep(platform.ctx)
  assert.equal((await countsOf(platform)).tokens, 0)
})
