// A follower of the journal receives every row of its shard at once, once and in order.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type pg from 'pg'
import { pino } from 'pino'
import { createListener } from '../../src/database/listen.ts'
import { newId } from '../../src/ids.ts'
import { followShard } from '../../src/journal/follow.ts'
import { shardOf } from '../../src/journal/pages.ts'
import { READ_ROWS_MAX, type Row } from '../../src/journal/read.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { wakeReaders } from '../../src/matchmaker/watch/readers.ts'
import { at, lobbyPlan } from '../matchmaker/plain-requests.ts'
import { type LocalWriter, newNamespace, openDatabase, openLocalWriter } from '../matchmaker/writers.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const log = pino({ level: 'silent' })

async function openRoom(t: TestContext) {
  const url = await createDatabase(t)
  const writer = await openLocalWriter(t, url)
  const listener = createListener({ url, log })
  t.after(() => listener.close())
  return { url, writer, listener, ctx: { pool: writer.pool, listener, log } }
}

function createLobby({ books }: LocalWriter, namespace_id: string): Promise<unknown> {
  return books.commit(namespace_id, (book, { now_ms }) =>
    decide.prepare(
      book,
      { plan: lobbyPlan(), idle_min: 1_000_000, lobby_count_max: 1_000_000 },
      newId(now_ms),
      at(now_ms),
    ),
  )
}

async function lastSeq(pool: pg.Pool, shard: number): Promise<number> {
  const { rows } = await pool.query<{ seq: number }>('select max(seq) as seq from journal where shard = $1', [shard])
  return rows[0]!.seq
}

test('a follower is woken by commits of its own shard only, and misses no row', async (t) => {
  const { writer, listener, ctx } = await openRoom(t)
  const namespace_id = newNamespace()
  const shard = shardOf(namespace_id)
  const after = await lastSeq(writer.pool, shard)
  const waker = wakeReaders(listener, writer.books)
  const taken: Row[] = []
  // No poll by time: the rows come by notification.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const following = followShard(ctx, { shard, after, take: (row) => void taken.push(row), onGap: assert.fail })
  t.mock.timers.reset()
  const commits = 50
  for (let count = 0; count < commits; count++) {
    await createLobby(writer, namespace_id)
    await createLobby(writer, newNamespace())
  }
  const last = await lastSeq(writer.pool, shard)
  await until('all of them are taken', () => taken.at(-1)?.seq === last)
  assert.deepEqual(
    taken.map(({ seq }) => seq),
    Array.from({ length: last - after }, (_, index) => after + 1 + index),
  )
  const entries = taken.flatMap(({ page }) => page.entries).filter((entry) => entry.namespace_id === namespace_id)
  assert.equal(entries.flatMap(({ changes }) => changes).length, commits)
  await following.close()
  waker.close()
})

test('a row on which a follower fails is passed again, and a row without a notification is found', async (t) => {
  const { writer, ctx } = await openRoom(t)
  const namespace_id = newNamespace()
  const shard = shardOf(namespace_id)
  const after = await lastSeq(writer.pool, shard)
  const taken: number[] = []
  let failures = 0
  const following = followShard(ctx, {
    shard,
    after,
    take({ seq }) {
      if (seq === after + 2 && failures++ < 1) throw new Error('not now')
      taken.push(seq)
    },
    onGap: assert.fail,
  })
  for (let count = 0; count < 3; count++) await createLobby(writer, namespace_id)
  await until('all of them are taken', () => taken.length === 3)
  assert.deepEqual(taken, [after + 1, after + 2, after + 3])
  assert.equal(failures, 2)
  await following.close()
})

test('a follower far behind reads page by page, and one behind a gap is notified once', async (t) => {
  const { url, writer, ctx } = await openRoom(t)
  const db = await openDatabase(t, url)
  const shard = 7
  const first = await lastSeq(writer.pool, shard)
  const count = 2 * READ_ROWS_MAX + 1
  await db.query(
    `insert into journal (shard, seq, writer, payload)
      select shard, seq + number, writer, payload from journal, generate_series(1, $3) as number
      where shard = $1 and seq = $2`,
    [shard, first, count],
  )
  let taken = first
  let gaps = 0
  const take = ({ seq }: Row): void => {
    assert.equal(seq, taken + 1)
    taken = seq
  }
  const ahead = followShard(ctx, { shard, after: first, take, onGap: assert.fail })
  await until('all of them are taken', () => taken === first + count)
  await ahead.close()

  await db.query('delete from journal where shard = $1 and seq <= $2', [shard, first + 10])
  const late = followShard(ctx, { shard, after: first, take: () => assert.fail(), onGap: () => void gaps++ })
  await until('it is notified', () => gaps > 0)
  // Another word wakes nobody any more.
  await ctx.listener.notify('journal', '')
  await late.close()
  assert.equal(gaps, 1)
})
