// Empty shards are taken over together at a start. The promise is that of every takeover: one writer, and nothing missed.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { decodePage, encodePage } from '../../src/journal/pages.ts'
import { takeOverEmpty } from '../../src/matchmaker/shards/empty-shards.ts'
import { append, takeOver } from '../../src/matchmaker/shards/fence.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const OLD = '00000000-0000-4000-8000-000000000001'
const ID = '00000000-0000-4000-8000-000000000002'
const CHANGES = encodePage({ format: 1, ms: 2_000, entries: [{ namespace_id: ID, changes: [] }] })
const NONE = encodePage({ format: 1, ms: 2_000, entries: [] })
const SERVED_MS = 5_000
const NOW_MS = 9_000
/** More rows than are read of a shard. */
const MANY = 70

async function openPool(t: TestContext): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: await createDatabase(t) })
  t.after(() => pool.end())
  pg.types.setTypeParser(pg.types.builtins.INT8, Number)
  return pool
}

async function projectedSeq(pool: pg.Pool, shard: number): Promise<number> {
  const { rows } = await pool.query('select projected_seq from shards where shard = $1', [shard])
  return rows[0]?.projected_seq ?? 0
}

async function lastRow(pool: pg.Pool, shard: number) {
  const { rows } = await pool.query(
    'select seq, writer, payload from journal where shard = $1 order by seq desc limit 1',
    [shard],
  )
  return { ...rows[0], page: decodePage(rows[0].payload) }
}

test('the shards without anything to read are taken over together, each as a takeover of its own would', async (t) => {
  const pool = await openPool(t)
  const rowsOf = async (shard: number, payloads: readonly Buffer[]): Promise<void> => {
    for (const [index, payload] of payloads.entries()) {
      const outcome = await append(pool, { shard, seq: index + 1, writer: OLD, payload })
      assert.equal(outcome.kind, 'committed')
    }
  }
  const reflect = (shard: number, seq: number) => pool.query('insert into shards values ($1, $2)', [shard, seq])
  const prepare: Record<string, (shard: number) => Promise<unknown>> = {
    'empty: nothing was ever in it': async () => {},
    'empty: it was taken over before': (shard) => rowsOf(shard, [NONE]),
    'empty: what happened in it is over, and the tables say so': async (shard) => {
      await rowsOf(shard, [NONE, CHANGES, NONE])
      await reflect(shard, 2)
    },
    'empty: its clients and its room are of the past': async (shard) => {
      await pool.query('insert into captcha_clients values ($1, $2, $3, $4, $4, 1)', [ID, 'past', shard, new Date(0)])
      await pool.query("insert into shard_room values ($1, 'local', '', 0, 0, 0)", [shard])
      await pool.query('insert into port_claims values ($1, 1, $2, $3, 1)', ['tcp', shard, ID])
    },
    'changes that the tables do not have': (shard) => rowsOf(shard, [NONE, CHANGES]),
    'more rows than are read': (shard) => rowsOf(shard, Array(MANY).fill(NONE)),
    'a row in a table': (shard) =>
      pool.query('insert into captcha_clients values ($1, $2, $3, $4, $4, 1)', [ID, 'x', shard, new Date(NOW_MS + 1)]),
    'a claim of a port': (shard) => pool.query('insert into port_claims values ($1, 2, $2, $3)', ['tcp', shard, ID]),
    'room that is used': (shard) => pool.query("insert into shard_room values ($1, 'local', '', 1, 0, 0)", [shard]),
  }
  const names = Object.keys(prepare)
  for (const [shard, name] of names.entries()) await prepare[name]!(shard)
  const taken = await takeOverEmpty(pool, new Map(names.map((_name, shard) => [shard, SERVED_MS])), NOW_MS)
  assert.deepEqual(
    [...taken.keys()].map((shard) => names[shard]).sort(),
    names.filter((name) => name.startsWith('empty')).sort(),
  )
  for (const [shard, { writer, takeover }] of taken) {
    const last = await lastRow(pool, shard)
    assert.deepEqual([last.seq, last.writer], [takeover.seq, writer], names[shard]!)
    const moved_ms = takeover.seq === 1 ? 0 : NOW_MS - SERVED_MS
    assert.deepEqual(last.page, { format: 1, ms: NOW_MS, entries: [], moved_ms }, names[shard]!)
    assert.equal(takeover.ms, NOW_MS)
    assert.equal(await projectedSeq(pool, shard), takeover.seq, names[shard]!)
    if (takeover.seq === 1) continue
    // The writer before is deposed.
    assert.equal((await append(pool, { shard, seq: takeover.seq, writer: OLD, payload: NONE })).kind, 'deposed')
  }
})

test('a shard in which another append comes between is not taken over with the others', async (t) => {
  const pool = await openPool(t)
  const client = await pool.connect()
  await client.query('begin')
  await client.query('insert into journal (shard, seq, writer, payload) values (1, 1, $1, $2)', [OLD, CHANGES])
  const taking = takeOverEmpty(pool, new Map([0, 1, 2].map((shard) => [shard, SERVED_MS])), NOW_MS)
  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await pool.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    )
    return rows.length > 0
  }
  await until('the takeover waits for the append', isWaiting)
  await client.query('commit')
  client.release()
  assert.deepEqual([...(await taking).keys()], [0, 2])
  assert.equal((await lastRow(pool, 1)).writer, OLD)
  assert.equal(await projectedSeq(pool, 1), 0)
  const times = { now_ms: NOW_MS, served_ms: SERVED_MS }
  assert.deepEqual(await takeOver(pool, 1, ID, times, null), { seq: 2, ms: NOW_MS })
})

test('of two processes that take over the same shards at once, one has each shard', async (t) => {
  const pool = await openPool(t)
  const served = new Map(Array.from({ length: 64 }, (_, shard) => [shard, SERVED_MS]))
  const both = await Promise.all([takeOverEmpty(pool, served, NOW_MS), takeOverEmpty(pool, served, NOW_MS)])
  for (const shard of served.keys()) {
    const last = await lastRow(pool, shard)
    // One after the other is possible too: then the later one is the writer.
    const writers = both.flatMap((taken) => taken.get(shard) ?? [])
    assert.ok(writers.some(({ writer, takeover }) => writer === last.writer && takeover.seq === last.seq))
    assert.equal(new Set(writers.map(({ takeover }) => takeover.seq)).size, writers.length)
  }
})
