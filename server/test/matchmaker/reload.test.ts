// What a writer finds when it starts: everything that was acknowledged, time that goes on, and tables that say the same
// as the journal.
import assert from 'node:assert'
import { test } from 'node:test'
import type pg from 'pg'
import { newId } from '../../src/ids.ts'
import { shardOf } from '../../src/journal/pages.ts'
import type { FreshIds, SeatTaken } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import { TABLES } from '../../src/matchmaker/projection/projected-tables.ts'
import { createDatabase } from '../support/database.ts'
import { at, findRequest, lobbyPlan } from './plain-requests.ts'
import {
  type LocalWriter,
  newNamespace,
  type Outcome,
  openDatabase,
  openLocalWriter,
  readJournal,
  seatedIn,
  startOpenWriter,
} from './writers.ts'

const freshIds = (): FreshIds => ({ lobby_id: newId(Date.now()), player_id: newId(Date.now()) })

test('after kill -9 of a writer the next one has exactly what was acknowledged, and the pause expires no player', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const killed = await startOpenWriter(t, url)
  const plan = lobbyPlan({ player_deadline_ms: 1_000, idle_grace_ms: 1_000, ready_within_ms: 1_000 })
  const find = (client: string) =>
    killed.call(namespace_id, 'find', findRequest({ client_key: client, seat_key: `find ${client}`, plan }))
  const acknowledged = await Promise.all(Array.from({ length: 100 }, (_, number) => find(`early ${number}`)))
  const { lobby_id, player_id } = acknowledged[0]!.result as SeatTaken
  assert.ok((await killed.call(namespace_id, 'ready', lobby_id)).result !== undefined)
  const call = { lobby_id, player_id, connect_key: 'key' }
  assert.equal((await killed.call(namespace_id, 'connected', call)).refused, undefined)
  const before = await killed.look(namespace_id)
  // Under way when it is killed: some are acknowledged, some only asked for.
  const late: Outcome[] = []
  const asked = Array.from({ length: 200 }, async (_, number) => late.push(await find(`late ${number}`)))
  await Promise.race(asked)
  await killed.kill()
  acknowledged.push(...late)

  const heir = await startOpenWriter(t, url)
  const { players, lobbies } = await heir.look(namespace_id)
  const by_id = new Map(players.map((player) => [player.player_id, player]))
  for (const outcome of acknowledged) assert.ok(by_id.has((outcome.result as SeatTaken).player_id))
  const seated = seatedIn(await readJournal(db, namespace_id)).map((player) => player.player_id)
  assert.deepEqual([...by_id.keys()].sort(), seated.sort(), 'neither lost nor doubled')
  assert.equal(new Set(players.map((player) => player.seat_key)).size, players.length)
  assert.equal(by_id.get(player_id)!.connect_key, 'key')
  const journal = await readJournal(db, namespace_id)
  const last_page = journal.findLast((row) => row.changes.length > 0)!
  const away_ms = journal.at(-1)!.ms - last_page.ms
  assert.ok(away_ms > 0)
  for (const player of before.players) {
    assert.equal(by_id.get(player.player_id)!.deadline_ms, player.deadline_ms + away_ms)
  }
  for (const lobby of lobbies) {
    assert.ok(lobby.players.length <= 4)
    assert.equal(lobby.stop_ms, null)
    const known = before.lobbies.find(({ lobby_id }) => lobby_id === lobby.lobby_id)
    if (known !== undefined) assert.equal(lobby.ready_deadline_ms, known.ready_deadline_ms + away_ms)
  }
  const again = await heir.call(namespace_id, 'connected', call)
  assert.deepEqual(again, { result: null }, 'the repetition of what was acknowledged gets the same answer')
  const second = await heir.call(namespace_id, 'connected', { ...call, connect_key: null })
  assert.deepEqual(second, { refused: 'MATCHMAKER_PLAYER_ALREADY_CONNECTED' })
})

test('book time never runs back, whatever the clocks of its writers say, and however often they take over', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const HOUR_MS = 3_600_000
  const start_ms = Date.now()
  const times: number[] = []
  for (const ahead_ms of [2 * HOUR_MS, 0, -HOUR_MS, HOUR_MS]) {
    let now_ms = start_ms + ahead_ms
    const writer = await openLocalWriter(t, url, { now: () => now_ms, elapsed: () => 0 })
    const takeTime = (): Promise<number> =>
      writer.books.commit(namespace_id, (book, env) => {
        const decision = decide.create(book, { ...findRequest(), plan: lobbyPlan() }, freshIds(), env)
        return 'changes' in decision ? { changes: decision.changes, result: env.now_ms } : decision
      })
    if (ahead_ms !== 0) times.push(await takeTime())
    now_ms -= HOUR_MS
    if (ahead_ms !== 0) times.push(await takeTime())
    // The tables say it all: only the takeover row is left to tell the time.
    await writer.projection.flush()
    for (const player of writer.books.book(namespace_id)?.players.values() ?? []) assert.equal(player.remove_ms, null)
    await writer.close()
  }
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  )
  const rows = (await readJournal(db, namespace_id)).map((row) => row.ms)
  assert.deepEqual(
    rows,
    rows.toSorted((a, b) => a - b),
  )
})

test('the tables say what the book says, as soon as they are written', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const writer = await openLocalWriter(t, url)
  await live(writer, namespace_id, 1)
  await writer.projection.flush()
  assert.deepEqual(await readTables(db), stateOf(writer.books.book(namespace_id)))
  await live(writer, namespace_id, 2)
  await writer.projection.flush()
  assert.deepEqual(await readTables(db), stateOf(writer.books.book(namespace_id)))
})

test('the tables and the journal after them make the same book as the journal alone', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const now = () => 1_800_000_000_000
  const writer = await openLocalWriter(t, url, { now })
  await live(writer, namespace_id, 1)
  await writer.projection.flush()
  // Nothing more gets into the tables, as if the writer were killed before.
  await db.query('begin')
  await db.query('lock table lobbies, players in share mode')
  await live(writer, namespace_id, 2)
  const before = stateOf(writer.books.book(namespace_id))
  const second = await openLocalWriter(t, url, { now })
  const { rows } = await db.query('select projected_seq from shards where shard = $1', [shardOf(namespace_id)])
  const ahead = (await readJournal(db, namespace_id)).length - Number(rows[0].projected_seq)
  assert.ok(ahead > 10, 'the journal is ahead of the tables')
  const from_tables = stateOf(second.books.book(namespace_id))
  assert.deepEqual(withoutDeadlines(from_tables), withoutDeadlines(before))
  await db.query('rollback')
  await writer.close()
  await second.close()
  await db.query('truncate lobbies, players; update shards set projected_seq = 0')
  const third = await openLocalWriter(t, url, { now })
  assert.deepEqual(stateOf(third.books.book(namespace_id)), from_tables)
  await third.projection.flush()
  assert.deepEqual(withoutDeadlines(await readTables(db)), withoutDeadlines(from_tables), 'and it writes them again')
})

/** Some of everything that can happen to lobbies and players. */
async function live(writer: LocalWriter, namespace_id: string, round: number): Promise<void> {
  const commit = <T>(decide: Parameters<LocalWriter['books']['commit']>[1]): Promise<T> =>
    writer.books.commit(namespace_id, decide) as Promise<T>
  const plan = lobbyPlan({ tags: { z: '1', a: '2' }, lobby_config: '{"a":1}', max_players_normal: 3 })
  const seats = await Promise.all(
    Array.from({ length: 24 }, (_, number) =>
      commit<SeatTaken>((book, { now_ms }) =>
        decide.find(
          book,
          findRequest({ client_key: `${round} ${number}`, seat_key: `find ${round} ${number}`, plan }),
          freshIds(),
          at(now_ms),
        ),
      ),
    ),
  )
  const [stopped, closed, , ...others] = [...new Set(seats.map((seat) => seat.lobby_id))]
  for (const lobby_id of [closed!, ...others]) await commit((book, { now_ms }) => decide.ready(book, lobby_id, now_ms))
  await commit((book) => decide.setClosed(book, closed!, true))
  await commit((book) => decide.setState(book, others[0]!, '{"wave":"ü\\u0000"}'))
  const calls = seats.filter((seat) => others.includes(seat.lobby_id))
  for (const [number, { player_id, lobby_id }] of calls.entries()) {
    await commit((book, { now_ms }) =>
      decide.connected(book, { player_id, lobby_id, connect_key: `${number}` }, now_ms),
    )
    if (number % 3 !== 0) continue
    await commit((book, { now_ms }) =>
      decide.disconnected(book, { player_id, lobby_id, disconnect_key: `${number}` }, now_ms),
    )
  }
  await commit((book, { now_ms }) => decide.stop(book, stopped!, 'exited', now_ms))
  await commit((book, { now_ms }) =>
    decide.release(book, seats.find((seat) => seat.lobby_id === closed)!.player_id, now_ms),
  )
}

type Plain = { lobbies: Record<string, unknown>[]; players: Record<string, unknown>[] }

function stateOf(book: Book | undefined): Plain {
  const lobbies = [...book!.lobbies.values()].map((lobby) => {
    const { players: _, spectators: _spectators, held_count: _held, held_spectator_count: _watched, ...rest } = lobby
    const { connection_count: _open, quiet_ms: _quiet, ...stored } = rest
    return stored
  })
  return sorted({ lobbies, players: [...book!.players.values()] })
}

async function readTables(db: pg.Client): Promise<Plain> {
  const lobbies = await db.query('select * from lobbies')
  const players = await db.query('select * from players')
  return sorted({
    lobbies: lobbies.rows.map(TABLES.lobbies.storedOf),
    players: players.rows.map(TABLES.players.storedOf),
  })
}

function sorted({ lobbies, players }: Plain): Plain {
  const by = (name: string) => (a: Record<string, unknown>, b: Record<string, unknown>) =>
    String(a[name]) < String(b[name]) ? -1 : 1
  return structuredClone({ lobbies: lobbies.toSorted(by('lobby_id')), players: players.toSorted(by('player_id')) })
}

/** A load moves deadlines, and nothing else. */
function withoutDeadlines({ lobbies, players }: Plain): Plain {
  return {
    lobbies: lobbies.map(({ ready_deadline_ms: _, idle_ms, ...lobby }) => ({ ...lobby, is_idle: idle_ms !== null })),
    players: players.map(({ deadline_ms: _, ...player }) => player),
  }
}
