// Two writers on one database, each a process: one is stopped in the middle of an append and goes on after the other has
// taken over. And the mistakes that were made while this was tried out, each as a test that would see it again.
import assert from 'node:assert'
import { type TestContext, test } from 'node:test'
import type { SeatTaken } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { ShardMoved } from '../../src/matchmaker/shards/shard-moved.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { at, findRequest, lobbyPlan, requestedSeat } from './plain-requests.ts'
import {
  closeGate,
  lastWriter,
  newNamespace,
  openDatabase,
  openLocalWriter,
  readJournal,
  seatedIn,
  startOpenWriter,
  startWriter,
} from './writers.ts'

const LATE_CALLS = 5

const wishOf = (client: string) => findRequest({ client_key: client, seat_key: `find ${client}`, plan: lobbyPlan() })

async function setUp(t: TestContext) {
  const url = await createDatabase(t)
  return { url, namespace_id: newNamespace(), db: await openDatabase(t, url) }
}

/** Whatever it is asked from now on, it says no and writes nothing. */
async function assertDeposed(writer: Awaited<ReturnType<typeof startOpenWriter>>, namespace_id: string): Promise<void> {
  for (let count = 0; count < LATE_CALLS; count++) {
    const late = await writer.call(namespace_id, 'find', wishOf(`late ${count}`))
    assert.deepEqual(late, { refused: 'SHARD_MOVED' })
  }
  await until('the old writer knows that it is deposed', writer.isDeposed)
}

test('an append that lands before the takeover is kept, and its stopped writer never writes again', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await startOpenWriter(t, url)
  const name = await lastWriter(db, namespace_id)
  assert.ok((await old.call(namespace_id, 'find', wishOf('early'))).result)
  const gate = await closeGate(t, url, name, 'before')
  const answer = old.call(namespace_id, 'find', wishOf('in flight'))
  await gate.reached()
  await old.pause()
  const before = (await readJournal(db, namespace_id)).length
  await gate.open()
  await until('the append has landed', async () => (await readJournal(db, namespace_id)).length > before)

  const heir = await startOpenWriter(t, url)
  assert.ok((await heir.call(namespace_id, 'find', wishOf('after'))).result)
  old.resume()
  const seat = (await answer).result as SeatTaken
  assert.ok(seat, 'what is durable is answered, however late')
  await assertDeposed(old, namespace_id)

  const journal = await readJournal(db, namespace_id)
  assert.deepEqual(
    seatedIn(journal).map((player) => player.client),
    ['early', 'in flight', 'after'],
  )
  assert.deepEqual([...new Set(journal.map((row) => row.writer))].length, 2)
  assert.equal(
    journal.findLastIndex((row) => row.writer === name),
    before,
    'nothing of it after the takeover',
  )
  const { players } = await heir.look(namespace_id)
  assert.ok(players.some((player) => player.player_id === seat.player_id))
  assert.equal(players.length, 3)
})

test('an append that lands after the takeover is void: its callers get 503, its writer never writes again', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await startOpenWriter(t, url)
  const name = await lastWriter(db, namespace_id)
  assert.ok((await old.call(namespace_id, 'find', wishOf('early'))).result)
  const gate = await closeGate(t, url, name, 'before')
  const answers = [old.call(namespace_id, 'find', wishOf('in flight'))]
  const backend = await gate.reached()
  answers.push(old.call(namespace_id, 'find', wishOf('gathered')))
  await old.pause()

  const heir = await startOpenWriter(t, url)
  assert.ok((await heir.call(namespace_id, 'find', wishOf('after'))).result)
  await gate.open()
  const idle = `select 1 from pg_stat_activity where pid = ${backend} and state = 'active'`
  await until('the late append has been refused', async () => (await db.query(idle)).rows.length === 0)
  old.resume()
  for (const answer of answers) assert.deepEqual(await answer, { refused: 'SHARD_MOVED' })
  await assertDeposed(old, namespace_id)

  const again = await heir.call(namespace_id, 'find', wishOf('in flight'))
  assert.ok(again.result, 'the caller’s own retry gets the seat')
  const journal = await readJournal(db, namespace_id)
  assert.deepEqual(
    seatedIn(journal).map((player) => player.client),
    ['early', 'after', 'in flight'],
  )
  assert.equal((await heir.look(namespace_id)).players.length, 3)
})

test('a stopped writer that wakes up to a cut connection does not take over from its heir', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await startOpenWriter(t, url)
  const gate = await closeGate(t, url, await lastWriter(db, namespace_id), 'before')
  const answer = old.call(namespace_id, 'find', wishOf('in flight'))
  await gate.reached()
  await old.pause()
  const heir = await startOpenWriter(t, url)
  const cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'writer ' || $1::text"
  await db.query(cut, [String(old.process_id)])
  old.resume()
  assert.deepEqual(await answer, { refused: 'SHARD_MOVED' })
  await assertDeposed(old, namespace_id)
  assert.ok((await heir.call(namespace_id, 'find', wishOf('after'))).result)
  assert.equal(heir.isDeposed(), false)
  assert.deepEqual(
    seatedIn(await readJournal(db, namespace_id)).map((player) => player.client),
    ['after'],
  )
})

test('mistake 1, a fence that does not fence: the rows of a stale writer are not inserted', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await openLocalWriter(t, url)
  const find = (writer: typeof old, client: string) =>
    writer.books.commit(namespace_id, (book, { now_ms }) =>
      decide.find(book, wishOf(client), { lobby_id: newNamespace(), player_id: newNamespace() }, at(now_ms)),
    )
  await find(old, 'early')
  const heir = await openLocalWriter(t, url)
  await find(heir, 'after')
  const before = await readJournal(db, namespace_id)
  const outcomes = await Promise.allSettled([find(old, 'stale'), find(old, 'stale too')])
  for (const outcome of outcomes) {
    assert.ok(outcome.status === 'rejected' && outcome.reason instanceof ShardMoved)
  }
  assert.ok(old.isDeposed())
  assert.deepEqual(await readJournal(db, namespace_id), before)
})

test('a stale writer does not write into the tables either', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await openLocalWriter(t, url)
  const seat = await old.books.commit(namespace_id, (book, { now_ms }) =>
    decide.find(book, wishOf('a'), { lobby_id: newNamespace(), player_id: newNamespace() }, at(now_ms)),
  )
  await old.books.commit(namespace_id, (book, { now_ms }) => decide.ready(book, seat.lobby_id, now_ms))
  const call = { player_id: seat.player_id, lobby_id: seat.lobby_id, connect_key: 'key' }
  await old.books.commit(namespace_id, (book, { now_ms }) => decide.connected(book, call, now_ms))
  const heir = await openLocalWriter(t, url)
  await heir.books.commit(namespace_id, (book, { now_ms }) =>
    decide.disconnected(book, { ...call, disconnect_key: null }, now_ms),
  )
  await heir.projection.flush()
  await old.projection.flush()
  const { rows } = await db.query('select player_count, remove_ts from lobbies join players using (lobby_id)')
  assert.equal(rows.length, 1)
  assert.equal(rows[0].player_count, 0)
  assert.notEqual(rows[0].remove_ts, null)
})

test('mistake 2, a reload that misses a commit in flight: the takeover waits for it, and reads it', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const old = await startOpenWriter(t, url)
  const name = await lastWriter(db, namespace_id)
  assert.ok((await old.call(namespace_id, 'find', wishOf('early'))).result)
  const gate = await closeGate(t, url, name, 'after')
  const answer = old.call(namespace_id, 'find', wishOf('in flight'))
  await gate.reached()
  await old.pause()

  const heir = startWriter(t, url)
  // Its takeover row has the key of the append that has landed and is not committed.
  const waits = "select 1 from pg_locks where locktype = 'transactionid' and not granted"
  await until('the takeover waits for the append', async () => (await db.query(waits)).rows.length > 0)
  assert.equal(heir.isOpen(), false)
  await gate.open()
  await until('the heir has taken over', heir.isOpen)
  const seen = await heir.look(namespace_id)
  assert.deepEqual(seen.players.map((player) => player.client).sort(), ['early', 'in flight'])

  old.resume()
  assert.ok((await answer).result, 'it did commit, so it is answered')
  await assertDeposed(old, namespace_id)
  assert.equal(seatedIn(await readJournal(db, namespace_id)).length, 2)
})

test('mistake 3, a poisoned batch: the command whose row is refused fails alone, and leaves nothing behind', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  await db.query(`
    create function refuse_poison() returns trigger language plpgsql as
      $$ begin raise exception 'poison' using errcode = '22P05'; end $$;
    create trigger poison before insert on journal for each row
      when (position('poison'::bytea in new.payload) > 0) execute function refuse_poison()`)
  const find = (client: string) =>
    writer.books.commit(namespace_id, (book, { now_ms }) =>
      decide.find(
        book,
        { ...wishOf(client), plan: lobbyPlan({ max_players_normal: 3, tags: { of: client } }) },
        { lobby_id: newNamespace(), player_id: newNamespace() },
        at(now_ms),
      ),
    )
  // The first flies alone; all others gather behind it, the poisoned ones in the middle of them.
  const clients = Array.from({ length: 30 }, (_, number) =>
    number % 10 === 5 ? `poison ${number}` : `client ${number}`,
  )
  const outcomes = await Promise.allSettled(clients.map(find))
  for (const [number, outcome] of outcomes.entries()) {
    const client = clients[number]!
    assert.equal(outcome.status, client.startsWith('poison') ? 'rejected' : 'fulfilled', client)
  }
  await assert.rejects(find('poison, alone'), /poison/)
  assert.ok(await find('after'))

  const healthy = [...clients.filter((client) => client.startsWith('client')), 'after']
  assert.deepEqual(
    seatedIn(await readJournal(db, namespace_id)).map((player) => player.client),
    healthy,
    'in the order of their calls',
  )
  const book = writer.books.book(namespace_id)!
  assert.deepEqual(
    [...book.players.values()].map((player) => player.client),
    healthy,
  )
  assert.equal(book.lobbies.size, Math.ceil(healthy.length / 3), 'no lobby of a poisoned command is left')
  assert.equal(book.live_lobby_count, book.lobbies.size)
  assert.ok([...book.lobbies.values()].every((lobby) => lobby.players.size === 3 || healthy.length % 3 !== 0))
})

test('mistake 3, in the tables: a row that is refused does not hold back the others, nor keep the shard from being read', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  await db.query(`alter table players add constraint poison check (client not like 'poison%');
    alter table lobbies add constraint poison check (game_mode not like 'poison%')`)
  const ids = () => ({ lobby_id: newNamespace(), player_id: newNamespace() })
  const create = (client: string, game_mode: string) =>
    writer.books.commit(namespace_id, (book, { now_ms }) =>
      decide.create(
        book,
        { ...requestedSeat({ client_key: client }), plan: lobbyPlan({ game_mode }) },
        ids(),
        at(now_ms),
      ),
    )
  const join = (client: string, lobby_id: string) =>
    writer.books.commit(namespace_id, (book, { now_ms }) =>
      decide.join(book, { ...requestedSeat({ client_key: client }), lobby_id }, ids(), now_ms),
    )
  const [good, , bad] = await Promise.all([
    create('one', 'default'),
    create('poison', 'default'),
    create('two', 'poison'),
    create('three', 'default'),
  ])
  await writer.projection.flush()
  const clients = async () =>
    (await db.query('select client from players order by client')).rows.map((row) => row.client)
  assert.deepEqual(await clients(), ['one', 'three', 'two'])
  assert.equal((await db.query('select 1 from lobbies')).rows.length, 3)

  // In the tables are now players without their lobby, and in the journal after them there will be more.
  await join('four', good.lobby_id)
  await join('five', bad.lobby_id)
  await writer.projection.flush()
  await db.query('begin')
  await db.query('lock table lobbies, players in share mode')
  await join('six', good.lobby_id)
  await join('seven', bad.lobby_id)
  const heir = await openLocalWriter(t, url)
  const loaded = [...heir.books.book(namespace_id)!.players.values()].map((player) => player.client).sort()
  assert.deepEqual(loaded, ['four', 'one', 'six', 'three'])
  await db.query('rollback')
  await heir.projection.flush()
  assert.ok((await clients()).includes('six'))
})
