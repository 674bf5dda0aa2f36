import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGame, createGroup } from '@musterhost/contract'
import { sql } from 'kysely'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

test('a call whose connection to the database breaks in a transaction is asked to try again', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { db } = platform.ctx
  const { group_id } = await platform.client.call(createGroup, { body: { display_name: 'Developers' } })
  await db.transaction().execute(async (trx) => {
    await sql`select from groups where group_id = ${group_id} for update`.execute(trx)
    const call = platform.client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
    const refused = assert.rejects(call, { code: 'API_NOT_AVAILABLE' })
    await until('the call waits for the group, and its connection is broken', async () => {
      const { rows } = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      return rows.length > 0
    })
    await refused
  })
})
