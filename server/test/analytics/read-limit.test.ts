// Many who ask for analytics at once: they take turns, and everybody else has connections to the database yet.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ApiError, getAnalytics, getGameById } from '@musterhost/contract'
import { READS_AT_ONCE_MAX, READS_WAITING_MAX } from '../../src/analytics/read-limit.ts'
import { newGame } from '../cloud/steps.ts'
import { openDatabase } from '../matchmaker/writers.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

test('of many simultaneous requests a few run at a time, and those beyond the queue are refused with Retry-After', async (t) => {
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { roles: 'api', database_url })
  const { client } = platform
  const { game_id, prod_id } = await newGame(platform)
  const db = await openDatabase(t, database_url)
  const ask = () =>
    client.call(getAnalytics, {
      query: {
        query_start: '2026-01-01T00:00:00Z',
        query_end: '2026-01-02T00:00:00Z',
        game_ids: [game_id],
        namespace_ids: [prod_id],
        variants: ['lobby_count'],
      },
    })

  await db.query('begin; lock table analytics_lines')
  const refusals: unknown[] = []
  const asked = Array.from({ length: READS_AT_ONCE_MAX + READS_WAITING_MAX + 1 }, () =>
    ask().catch((error: ApiError) => void refusals.push(error.code)),
  )
  await until('one of them to be refused', () => refusals.length > 0)
  assert.equal((await client.call(getGameById, { params: { game_id } })).game.game_id, game_id, 'others are answered')
  await until('so many read, and no more', async () => {
    const { rows } = await db.query(
      "select count(*)::integer as count from pg_locks where relation = 'analytics_lines'::regclass and not granted",
    )
    return rows[0].count === READS_AT_ONCE_MAX
  })

  await db.query('commit')
  const answers = await Promise.all(asked)
  assert.equal(answers.filter((answer) => answer?.data_sets.length === 1).length, asked.length - 1)
  assert.deepEqual(refusals, ['API_NOT_AVAILABLE'])
})
