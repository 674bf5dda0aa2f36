// What callers receive when an append fails, when its outcome is unknown, and when the database is away: once
// what has become true, or that it is not now, and then nothing happens on their behalf.
import assert from 'node:assert'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { connect } from '../../src/database/connect.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { newId } from '../../src/ids.ts'
import type { FreshIds, SeatTaken } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import { ShardMoved } from '../../src/matchmaker/shards/shard-moved.ts'
import { createDatabase } from '../support/database.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { until } from '../support/until.ts'
import { openDatabaseProxy } from './database-proxy.ts'
import { findRequest, lobbyPlan } from './plain-requests.ts'
import {
  closeGate,
  type LocalWriter,
  lastWriter,
  newNamespace,
  openDatabase,
  openLocalWriter,
  readJournal,
  seatedIn,
} from './writers.ts'

/** Of shard.ts. */
const RECOVERY_WAIT_MS_MAX = 5_000
const REFUSED_NOW = { code: 'API_NOT_AVAILABLE' }

const freshIds = (): FreshIds => ({ lobby_id: newId(Date.now()), player_id: newId(Date.now()) })
const wishOf = (client: string) => findRequest({ client_key: client, seat_key: `find ${client}`, plan: lobbyPlan() })

function createCaller(writer: LocalWriter, namespace_id: string) {
  const commit = <T>(decide: Parameters<LocalWriter['books']['commit']>[1]): Promise<T> =>
    writer.books.commit(namespace_id, decide) as Promise<T>
  return {
    commit,
    find: (client: string, changes: Partial<ReturnType<typeof wishOf>> = {}): Promise<SeatTaken> =>
      commit((book, env) => decide.find(book, { ...wishOf(client), ...changes }, freshIds(), env)),
    read: <T>(look: (book: Book) => T): Promise<T> => commit((book) => ({ changes: [], result: look(book) })),
  }
}

/** Whether it has ended by now. */
function watch(promise: Promise<unknown>): () => boolean {
  let has_ended = false
  const end = (): void => {
    has_ended = true
  }
  promise.then(end, end)
  return () => has_ended
}

async function setUp(t: TestContext) {
  const url = await createDatabase(t)
  const namespace_id = newNamespace()
  const db = await openDatabase(t, url)
  const clientsInJournal = async (): Promise<string[]> =>
    seatedIn(await readJournal(db, namespace_id)).map((player) => player.client)
  return { url, namespace_id, db, clientsInJournal }
}

test('a connection that is cut after the commit: every caller gets the answer that has become true, once', async (t) => {
  const { url, namespace_id, db, clientsInJournal } = await setUp(t)
  const proxy = await openDatabaseProxy(t, url)
  const writer = await openLocalWriter(t, proxy.url)
  const { find } = createCaller(writer, namespace_id)
  await find('early')
  const before = (await readJournal(db, namespace_id)).length
  proxy.loseAnswers()
  // Without a key nothing but the journal can say that it has been carried out.
  const flying = find('flying', { seat_key: null })
  const gathered = find('gathered')
  await until('it has committed', async () => (await readJournal(db, namespace_id)).length > before)
  assert.deepEqual(await clientsInJournal(), ['early', 'flying'])
  proxy.cut()
  const seat = await flying
  assert.equal(writer.books.book(namespace_id)!.players.get(seat.player_id)?.client, 'flying')
  assert.deepEqual(await find('gathered'), await gathered, 'and again for the same key')
  assert.deepEqual(await clientsInJournal(), ['early', 'flying', 'gathered'])
  assert.equal(writer.isDeposed(), false)
})

test('a connection that is cut before the commit: the command is carried out again, once', async (t) => {
  const { url, namespace_id, db, clientsInJournal } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  const { find } = createCaller(writer, namespace_id)
  await find('early')
  const gate = await closeGate(t, url, await lastWriter(db, namespace_id), 'before')
  const answers = [find('flying'), find('gathered'), find('flying')]
  const backend = await gate.reached()
  assert.deepEqual(await clientsInJournal(), ['early'])
  await db.query('select pg_terminate_backend($1)', [backend])
  const [flying, , again] = await Promise.all(answers)
  assert.deepEqual(again, flying)
  await gate.open()
  assert.deepEqual(await clientsInJournal(), ['early', 'flying', 'gathered'])
  assert.equal(writer.books.book(namespace_id)!.players.size, 3)
})

test('an append that takes too long is not waited for, and what it still does is void', async (t) => {
  const { url, namespace_id, db, clientsInJournal } = await setUp(t)
  const writer = await openLocalWriter(t, url, { now: () => 1_800_000_000_000 })
  const { find } = createCaller(writer, namespace_id)
  await find('early')
  const name = await lastWriter(db, namespace_id)
  const gate = await closeGate(t, url, name, 'before')
  const answer = find('slow')
  const backend = await gate.reached()
  const seat = await answer
  await gate.open()
  const lives = `select 1 from pg_stat_activity where pid = ${backend} and state = 'active'`
  await until('the late append has ended', async () => (await db.query(lives)).rows.length === 0)
  assert.deepEqual(await clientsInJournal(), ['early', 'slow'])
  assert.equal((await readJournal(db, namespace_id)).filter((row) => row.writer === name).length, 2)
  assert.deepEqual(await find('slow'), seat)
})

test('a database that is stopped and comes back within the hold: callers wait, and get what they asked for', async (t) => {
  const { writer, namespace_id, stop, start } = await setUpServer(t)
  const { find, read } = createCaller(writer, namespace_id)
  await find('early')
  await stop()
  const answers = [find('one'), find('two'), read((book) => book.players.size)] as const
  const have_ended = answers.map(watch)
  await assert.rejects(writer.pool.query('select 1'))
  assert.deepEqual(
    have_ended.map((hasEnded) => hasEnded()),
    [false, false, false],
  )
  await start()
  await Promise.all(answers)
  assert.equal(writer.books.book(namespace_id)!.players.size, 3)
})

test('beyond the hold callers get 503, and nothing happens later on their behalf', async (t) => {
  const { writer, namespace_id, stop, start, advance, url } = await setUpServer(t)
  const { find } = createCaller(writer, namespace_id)
  await find('early')
  await stop()
  const lost = find('lost')
  const hasEnded = watch(lost)
  await assert.rejects(writer.pool.query('select 1'))
  const held = find('held')
  advance(RECOVERY_WAIT_MS_MAX - 1)
  assert.equal(hasEnded(), false)
  advance(1)
  await assert.rejects(lost, REFUSED_NOW)
  await assert.rejects(held, REFUSED_NOW)
  await start()
  await find('after')
  const db = await openDatabase(t, url)
  const clients = seatedIn(await readJournal(db, namespace_id)).map((player) => player.client)
  assert.deepEqual(clients, ['early', 'after'])
  assert.equal(writer.books.book(namespace_id)!.players.size, 2)
  // It is dropped with its server, which ends before the writer.
  await writer.close()
})

test('a writer that is closed while the database is away ends, and so do all who wait', async (t) => {
  const { writer, namespace_id, stop } = await setUpServer(t)
  const { find } = createCaller(writer, namespace_id)
  await find('early')
  await stop()
  const answers = Promise.allSettled([find('one'), find('two')])
  await assert.rejects(writer.pool.query('select 1'))
  await writer.close()
  for (const answer of await answers) {
    // What was not sent to the database may be asked of the next holder of the shard.
    assert.ok(answer.status === 'rejected')
    assert.ok(answer.reason instanceof ShardMoved || answer.reason.code === REFUSED_NOW.code)
  }
  await assert.rejects(find('late'), ShardMoved)
})

test('refusals and reads wait for the commit that they rest on', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  const { find, read } = createCaller(writer, namespace_id)
  const gate = await closeGate(t, url, await lastWriter(db, namespace_id), 'before')
  const seat = find('first', { plan: lobbyPlan({ max_players_normal: 1 }) })
  await gate.reached()
  const refusal = find('second', { plan: null })
  const answer = read((book) => book.players.size)
  const have_ended = [seat, refusal, answer].map(watch)
  await db.query('select 1')
  assert.deepEqual(
    have_ended.map((hasEnded) => hasEnded()),
    [false, false, false],
  )
  await gate.open()
  await seat
  await assert.rejects(refusal, { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' })
  assert.equal(await answer, 1)
})

test('"full" from a batch that then fails is not said: who was refused gets the seat that is free after all', async (t) => {
  const { url, namespace_id, db, clientsInJournal } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  const { find, read } = createCaller(writer, namespace_id)
  await find('early', { plan: lobbyPlan({ max_players_normal: 3 }) })
  const gate = await closeGate(t, url, await lastWriter(db, namespace_id), 'before')
  await db.query(`
    create function refuse_poison() returns trigger language plpgsql as
      $$ begin raise exception 'poison' using errcode = '22P05'; end $$;
    create trigger poison before insert on journal for each row
      when (position('poison'::bytea in new.payload) > 0) execute function refuse_poison()`)
  const poisoned = assert.rejects(find('poison', { plan: null }), /poison/)
  await gate.reached()
  const third = find('third', { plan: null })
  const fourth = find('fourth', { plan: null })
  const count = read((book) => book.players.size)
  await gate.open()
  await poisoned
  await Promise.all([third, fourth])
  assert.equal(await count, 3)
  assert.deepEqual(await clientsInJournal(), ['early', 'third', 'fourth'])
})

test('a caller that waits for a lobby hears that it is ready when that is durable, and not before', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  const { commit, find } = createCaller(writer, namespace_id)
  const seat = await find('first')
  assert.equal(seat.is_ready, false)
  const patience = { deadline_ms: Number.POSITIVE_INFINITY, isGone: () => false }
  const waits = [writer.books.waitUntilReady(namespace_id, seat, patience)]
  const other = await find('other', { plan: null })
  const gone = writer.books.waitUntilReady(namespace_id, other, patience)
  await commit((book, { now_ms }) => decide.release(book, other.player_id, now_ms))
  assert.equal(await gone, 'gone', 'a seat that is lost is not waited for')
  const gate = await closeGate(t, url, await lastWriter(db, namespace_id), 'before')
  const ready = commit((book, { now_ms }) => decide.ready(book, seat.lobby_id, now_ms))
  await gate.reached()
  waits.push(writer.books.waitUntilReady(namespace_id, seat, patience))
  const again = find('first')
  const have_ended = [...waits, again].map(watch)
  await db.query('select 1')
  assert.deepEqual(
    have_ended.map((hasEnded) => hasEnded()),
    [false, false, false],
  )
  await gate.open()
  await ready
  assert.deepEqual(await Promise.all(waits), ['ready', 'ready'])
  assert.deepEqual(await again, { ...seat, is_ready: true })
  assert.equal(await writer.books.waitUntilReady(namespace_id, seat, patience), 'ready', 'who comes late hears it too')
  await commit((book, { now_ms }) => decide.stop(book, seat.lobby_id, 'exited', now_ms))
  assert.equal(await writer.books.waitUntilReady(namespace_id, seat, patience), 'gone')
})

test('a reload notifies callers that wait of what has become of their lobby', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const proxy = await openDatabaseProxy(t, url)
  const writer = await openLocalWriter(t, proxy.url)
  const { commit, find } = createCaller(writer, namespace_id)
  const patience = { deadline_ms: Number.POSITIVE_INFINITY, isGone: () => false }
  const seat = await find('first')
  const wait = writer.books.waitUntilReady(namespace_id, seat, patience)
  const before = (await readJournal(db, namespace_id)).length
  proxy.loseAnswers()
  const ready = commit((book, { now_ms }) => decide.ready(book, seat.lobby_id, now_ms))
  await until('it has committed', async () => (await readJournal(db, namespace_id)).length > before)
  proxy.cut()
  assert.equal(await wait, 'ready')
  await ready
})

test('tables that are slow to write do not hold up those who ask for a seat', async (t) => {
  const { url, db } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  await db.query('begin')
  await db.query('lock table lobbies, players in share mode')
  // Each in a shard of its own, more than the process has connections; each starts a lobby.
  for (let number = 0; number < 20; number++) {
    const namespace_id = `00000000-0000-7000-8000-00000000${number.toString(16).padStart(4, '0')}`
    await createCaller(writer, namespace_id).find('first')
  }
  await db.query('rollback')
  await writer.projection.flush()
  assert.equal((await db.query('select 1 from lobbies')).rows.length, 20)
})

test('many more commands at once than a batch holds are all answered, in the order of their arrival', async (t) => {
  const COMMANDS = 5_000
  const SEATS = 2_560
  const { url, namespace_id, clientsInJournal } = await setUp(t)
  const writer = await openLocalWriter(t, url)
  const { find } = createCaller(writer, namespace_id)
  const plan = lobbyPlan({ max_players_normal: 256, max_players_direct: 256 })
  const clients = Array.from({ length: COMMANDS }, (_, number) => `client ${number}`)
  const bound = { plan, lobby_count_max: SEATS / 256 }
  const outcomes = await Promise.allSettled(clients.map((client) => find(client, bound)))
  for (const outcome of outcomes.slice(SEATS)) {
    assert.ok(outcome.status === 'rejected' && outcome.reason.code === 'MATCHMAKER_TOO_MANY_LOBBIES')
  }
  assert.ok(outcomes.slice(0, SEATS).every((outcome) => outcome.status === 'fulfilled'))
  assert.deepEqual(await clientsInJournal(), clients.slice(0, SEATS))
})

test('of 1,000 calls with one player token exactly one consumes it, over connections that are cut meanwhile', async (t) => {
  const { url, namespace_id, db } = await setUp(t)
  const proxy = await openDatabaseProxy(t, url)
  const writer = await openLocalWriter(t, proxy.url)
  const { commit, find } = createCaller(writer, namespace_id)
  const seat = await find('first')
  await commit((book, { now_ms }) => decide.ready(book, seat.lobby_id, now_ms))
  const { player_id, lobby_id } = seat
  const answers = Array.from({ length: 1_000 }, () =>
    commit((book, { now_ms }) => decide.connected(book, { player_id, lobby_id, connect_key: null }, now_ms)),
  )
  proxy.cut()
  const outcomes = await Promise.allSettled(answers)
  const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
  assert.equal(won.length, 1)
  for (const outcome of outcomes) {
    assert.ok(outcome.status === 'fulfilled' || outcome.reason.code === 'MATCHMAKER_PLAYER_ALREADY_CONNECTED')
  }
  const changes = (await readJournal(db, namespace_id)).flatMap((row) => row.changes)
  assert.equal(changes.filter((change) => change.kind === 'player_connected').length, 1)
})

/** A PostgreSQL of the test's own, which can be stopped, and a writer on it whose clock stands still. */
async function setUpServer(t: TestContext) {
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-outcomes-'))
  const log = pino({ level: 'silent' })
  const start = () => startEmbedded({ data_dir, settings: { fsync: 'off' }, log })
  await placeCluster(data_dir)
  let server = await start()
  const { url } = server
  const connection = connect({ url, application_name: 'test', log })
  await migrate(connection.db)
  await connection.close()
  let now_ms = Date.now()
  const writer = await openLocalWriter(t, url, { now: () => now_ms })
  t.after(async () => {
    await server.stop()
    await rm(data_dir, { recursive: true, force: true })
  })
  return {
    url,
    writer,
    namespace_id: newNamespace(),
    stop: () => server.stop(),
    async start() {
      server = await start()
    },
    advance(ms: number) {
      now_ms += ms
    },
  }
}
