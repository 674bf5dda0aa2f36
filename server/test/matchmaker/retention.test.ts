// The journal and its tables after what is old was removed: the same books, the same fence, and nothing that somebody
// still has to read.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import { OLD_ROWS } from '../../src/cloud/sweep/retention.ts'
import { type OldRows, removeOldSql } from '../../src/database/remove-old.ts'
import { UNUSED_GUESTS } from '../../src/database/unused-guests.ts'
import { newId } from '../../src/ids.ts'
import { shardOf } from '../../src/journal/pages.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { forget } from '../../src/matchmaker/book/evolve.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import {
  OLD_IDENTITIES,
  OLD_LOBBIES,
  OLD_PARTIES,
  OLD_PLAYERS,
  OLD_SHARDS_SQL,
  OLD_TICKETS,
  REMOVE_PAGES_SQL,
  removeEnded,
  removeOldJournal,
} from '../../src/matchmaker/retention.ts'
import { append, takeOver } from '../../src/matchmaker/shards/fence.ts'
import { OLD_RUNS } from '../../src/runner/rows.ts'
import { createDatabase } from '../support/database.ts'
import { findRequest, lobbyPlan } from './plain-requests.ts'
import { type LocalWriter, newNamespace, openDatabase, openLocalWriter } from './writers.ts'

const START_MS = 1_900_000_000_000
const HOUR_MS = 3_600_000
const RUNS = 3

/** Makes pages old enough: the database's clock decides the age of a page. */
async function age(db: pg.Client): Promise<void> {
  await db.query("update journal set ts = ts - interval '2 hours'")
}

/** The harshest that there is: of the journal what is an hour old, of the tables all that no book remembers. */
async function removeAll(pool: pg.Pool, now_ms: number): Promise<number> {
  return (
    (await removeOldJournal(pool, HOUR_MS)) +
    (await removeEnded(pool, OLD_PLAYERS, 0, now_ms)) +
    (await removeEnded(pool, OLD_LOBBIES, 0, now_ms))
  )
}

const stepArbitrary = fc.record({
  kind: fc.constantFrom('find', 'create', 'ready', 'connected', 'disconnected', 'stop', 'state', 'wait', 'reload'),
  which: fc.nat(20),
})
type Step = { kind: string; which: number }

test('a book that is read after old rows were removed is the book that it was, through any life', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  let removed = 0
  let reloads = 0
  await fc.assert(
    fc.asyncProperty(fc.array(stepArbitrary, { minLength: 20, maxLength: 40 }), async (steps) => {
      const namespace_id = newNamespace()
      let now_ms = START_MS
      const open = () => openLocalWriter(t, url, { now: () => now_ms })
      let writer = await open()
      for (const step of [...steps, { kind: 'reload', which: 0 }]) {
        if (step.kind === 'wait') now_ms += (step.which % 12) * 60_000
        else if (step.kind !== 'reload') await take(writer, namespace_id, step, now_ms)
        else {
          // Time ends what is due, and what is over long enough is forgotten.
          await writer.books.commit(namespace_id, () => ({ changes: [], result: null }))
          await writer.projection.flush()
          await age(db)
          // Book time is ahead of `now_ms` from the second life on: it never runs back.
          const time_ms = writer.books.nowMs()
          const before = toldOf(writer.books.book(namespace_id), time_ms)
          removed += await removeAll(writer.pool, time_ms)
          await writer.close()
          writer = await open()
          assert.deepEqual(toldOf(writer.books.book(namespace_id), time_ms), before)
          reloads++
        }
      }
      await writer.close()
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
  assert.ok(removed > 0 && reloads >= RUNS)
  const { rows } = await db.query('select count(*)::integer as count from journal group by shard')
  for (const { count } of rows) assert.ok(count >= 1, 'the last row stays')
})

async function take(
  { books }: LocalWriter,
  namespace_id: string,
  { kind, which }: Step,
  now_ms: number,
): Promise<void> {
  await books
    .commit<unknown>(namespace_id, (book, env) => {
      const lobbies = [...book.lobbies.values()]
      const players = [...book.players.values()]
      const lobby_id = lobbies[which % Math.max(1, lobbies.length)]?.lobby_id ?? ''
      const player = players[which % Math.max(1, players.length)]
      const seat = { player_id: player?.player_id ?? '', lobby_id: player?.lobby_id ?? '' }
      const ids = { lobby_id: newId(now_ms), player_id: newId(now_ms) }
      const wish = findRequest({ client_key: `${which}`, seat_key: `${kind} ${which}`, plan: lobbyPlan() })
      if (kind === 'find') return decide.find(book, wish, ids, env)
      if (kind === 'create') return decide.create(book, { ...wish, plan: lobbyPlan() }, ids, env)
      if (kind === 'ready') return decide.ready(book, lobby_id, env.now_ms)
      if (kind === 'state') return decide.setState(book, lobby_id, `${which}`)
      if (kind === 'stop') return decide.stop(book, lobby_id, 'exited', env.now_ms)
      if (kind === 'connected') return decide.connected(book, { ...seat, connect_key: `${which}` }, env.now_ms)
      return decide.disconnected(book, { ...seat, disconnect_key: `${which}` }, env.now_ms)
    })
    // Most of what is asked for at random is refused.
    .catch(() => {})
}

/** All that a book returns, except deadlines, which a load moves, and what it would forget at its next sweep. */
function toldOf(book: Book | undefined, now_ms: number): unknown {
  if (book !== undefined) forget(book, now_ms)
  const lobbies = [...(book?.lobbies.values() ?? [])].map(
    ({ ready_deadline_ms: _, idle_ms, players, ...lobby }) =>
      ({ ...lobby, is_idle: idle_ms !== null, players: [...players.keys()].sort() }) as const,
  )
  const players = [...(book?.players.values() ?? [])].map(({ deadline_ms: _, ...player }) => player)
  return structuredClone({
    lobbies: lobbies.toSorted((a, b) => (a.lobby_id < b.lobby_id ? -1 : 1)),
    players: players.toSorted((a, b) => (a.player_id < b.player_id ? -1 : 1)),
  })
}

test('a writer whose next row was there and has been removed stays deposed, and so does a takeover that slept', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const shard = shardOf(namespace_id)
  const stale = newId(START_MS)
  const writer = await openLocalWriter(t, url, { now: () => START_MS })
  const { pool } = writer
  const taken = (await takeOver(pool, shard, stale, { now_ms: START_MS, served_ms: 0 }, null))!
  const heir = await openLocalWriter(t, url, { now: () => START_MS })
  for (const kind of ['find', 'create', 'stop', 'create']) await take(heir, namespace_id, { kind, which: 0 }, START_MS)
  await heir.projection.flush()
  await age(db)
  assert.ok((await removeOldJournal(pool, HOUR_MS)) > 0)
  const { rows } = await db.query(
    'select min(seq)::integer as first, max(seq)::integer as last from journal where shard = $1',
    [shard],
  )
  assert.ok(rows[0].first > taken.seq + 1, 'the key that it would write at is free')
  for (let seq = taken.seq + 1; seq < rows[0].last; seq++) {
    const outcome = await append(pool, { shard, seq, writer: stale, payload: Buffer.from('{}') })
    assert.equal(outcome.kind, 'deposed')
  }
  await take(heir, namespace_id, { kind: 'create', which: 1 }, START_MS)
  assert.equal(heir.isDeposed(), false)
  await writer.close()
  await heir.close()
})

test('a takeover in the midst of removal finds the same book', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const now = () => START_MS
  let writer = await openLocalWriter(t, url, { now })
  for (let round = 0; round < 5; round++) {
    for (let which = 0; which < 6; which++)
      await take(writer, namespace_id, { kind: 'create', which: 10 * round + which }, START_MS)
    if (round % 2 === 0) await writer.projection.flush()
    await age(db)
    const before = toldOf(writer.books.book(namespace_id), START_MS)
    const [next] = await Promise.all([
      openLocalWriter(t, url, { now }),
      removeAll(writer.pool, START_MS),
      writer.projection.flush(),
    ])
    assert.deepEqual(toldOf(next.books.book(namespace_id), START_MS), before)
    await writer.close()
    writer = next
  }
})

test('a reader of the journal holds back what it has not read, and what is not projected stays', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const shard = shardOf(namespace_id)
  const writer = await openLocalWriter(t, url)
  for (let which = 0; which < 9; which++) await take(writer, namespace_id, { kind: 'create', which }, START_MS)
  await writer.projection.flush()
  assert.equal(await removeOldJournal(writer.pool, HOUR_MS), 0, 'nothing is old')
  await age(db)
  const seqs = async () =>
    (await db.query('select seq::integer from journal where shard = $1 order by seq', [shard])).rows.map(
      ({ seq }) => seq,
    )
  const all = await seqs()
  assert.ok(all.length >= 10)
  await db.query("insert into journal_readers values ($1, 'test', 4), ($1, 'other', 7)", [shard])
  await removeOldJournal(writer.pool, HOUR_MS)
  assert.deepEqual(await seqs(), all.slice(4))
  await db.query("delete from journal_readers where reader = 'test'")
  await db.query('update shards set projected_seq = 6 where shard = $1', [shard])
  await removeOldJournal(writer.pool, HOUR_MS)
  assert.deepEqual(await seqs(), all.slice(5), 'the row at projected_seq stays, and all after it')
  await db.query('update shards set projected_seq = $2 where shard = $1', [shard, all.at(-1)])
  await db.query('delete from journal_readers')
  await removeOldJournal(writer.pool, HOUR_MS)
  assert.deepEqual(await seqs(), all.slice(-1))
})

test('no removal reads a table that is filled from end to end', async (t) => {
  const db = await openDatabase(t, await createDatabase(t))
  const ROWS = 20_000
  const times = "now() - number * interval '1 minute'"
  const numbers = `from generate_series(1, ${ROWS}) as number`
  await db.query(`
    insert into journal (shard, seq, writer, ts, payload)
      select number % 64, number / 64 + 1, gen_random_uuid(), ${times}, '{}' ${numbers};
    insert into shards select shard, ${ROWS} / 64 from generate_series(0, 63) as shard;
    insert into players select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'c', now(), now(), null, ${times} ${numbers};
    insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, exit_ts)
      select gen_random_uuid(), 'r', 'process', '{}', '{}', ${times} ${numbers};
    insert into lobbies select gen_random_uuid(), gen_random_uuid(), 1, gen_random_uuid(), 'm', 'r', 'public', false, false,
      1, 1, 1, '{}', null, null, 0, 1, 1, now(), now(), null, null, ${times} ${numbers};
    insert into parties select gen_random_uuid(), gen_random_uuid(), 1, 'c', gen_random_uuid(), '[]', 1, now(), now(), ${times} ${numbers};
    insert into tickets select gen_random_uuid(), gen_random_uuid(), 1, '{}', now(), ${times} ${numbers};
    insert into audit_events select gen_random_uuid(), ${times}, null, null, null, 'user', null, null, null, '192.0.2.1',
      gen_random_uuid(), 'o', 'done', null, '[]', 0 ${numbers};
    insert into revoked_tokens (token_id, expire_ts) select gen_random_uuid(), ${times} ${numbers};
    insert into users (user_id, email, display_name) values (gen_random_uuid(), 'a@example.com', 'a');
    insert into user_sessions (session_id, user_id, create_ts, refresh_ts, expire_ts, end_ts)
      select gen_random_uuid(), user_id, now(), now(), ${times}, ${times} from users, generate_series(1, ${ROWS}) as number;
    insert into email_verifications select gen_random_uuid(), 'a', 'c', '', 0, ${times}, now() ${numbers};
    insert into groups values (gen_random_uuid(), 'g');
    insert into games select gen_random_uuid(), group_id, 'g', 'g' from groups;
    insert into group_invites select sha256(number::text::bytea), group_id, 'developer', 0, 1, now(), ${times}
      from groups, generate_series(1, ${ROWS}) as number;
    insert into versions (version_id, game_id, display_name, config) select gen_random_uuid(), game_id, 'v', '{}' from games;
    insert into namespaces (namespace_id, game_id, name_id, display_name, version_id)
      select gen_random_uuid(), game_id, 'n', 'n', version_id from versions;
    insert into identities select gen_random_uuid(), namespace_id, 'g', 1, now(), ${times}
      from namespaces, generate_series(1, ${ROWS}) as number;
    insert into rating_results select gen_random_uuid(), 'm', namespace_id, '', '', ${times}
      from namespaces, generate_series(1, ${ROWS}) as number;
    insert into notice_targets (target_id, game_id, name, kind, secrets, settings)
      select gen_random_uuid(), game_id, 't', 'email', '', '{}' from games;
    insert into notices (notice_id, target_id, source, event, notice, create_ts, state, end_ts)
      select gen_random_uuid(), target_id, number::text, 'test', '{}', now(), 'delivered', ${times}
      from notice_targets, generate_series(1, ${ROWS}) as number;
    insert into tokens select gen_random_uuid(), 'cloud', game_id, null, now(), ${times} from games, generate_series(1, ${ROWS}) as number;
    insert into device_links select gen_random_uuid(), game_id, ${times} from games, generate_series(1, ${ROWS}) as number;
    analyze`)
  const plan = async (text: string, values: unknown[]): Promise<string> => {
    const { rows } = await db.query(`explain ${text}`, values)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  const rules: readonly OldRows[] = [
    UNUSED_GUESTS,
    ...OLD_ROWS,
    OLD_LOBBIES,
    OLD_PLAYERS,
    OLD_RUNS,
    OLD_IDENTITIES,
    OLD_PARTIES,
    OLD_TICKETS,
  ]
  for (const rule of rules) {
    const text = await plan(removeOldSql(rule), [new Date(), 1_000])
    assert.match(text, new RegExp(`Index Scan using \\w+ on ${rule.table}`), text)
    assert.doesNotMatch(text, new RegExp(`Seq Scan on ${rule.table}`), text)
  }
  for (const text of [await plan(OLD_SHARDS_SQL, [63, 60]), await plan(REMOVE_PAGES_SQL, [1, 60, 1_000])]) {
    assert.match(text, /journal_pkey/, text)
    assert.doesNotMatch(text, /Seq Scan on journal\b/, text)
  }
})
