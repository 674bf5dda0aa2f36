// Reservations that run out, against everything that may happen to them in the same millisecond, with the journal as
// the witness: whatever was decided is in it once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiError } from '@musterhost/contract'
import type pg from 'pg'
import { newId } from '../../src/ids.ts'
import type { Env, FreshIds, SeatTaken } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import type { Books } from '../../src/matchmaker/shards/books.ts'
import type { Decide } from '../../src/matchmaker/shards/pending.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { findRequest, lobbyPlan, requestedSeat } from './plain-requests.ts'
import { newNamespace, openDatabase, openLocalWriter, readJournal } from './writers.ts'

const SEATS_EACH = 10
const DEADLINE_MS = 120_000
const PLAN = lobbyPlan({
  max_players_normal: SEATS_EACH,
  max_players_direct: SEATS_EACH,
  max_players_party: SEATS_EACH,
  player_deadline_ms: DEADLINE_MS,
  idle_grace_ms: 24 * 3_600_000,
})

const freshIds = (): FreshIds => ({ lobby_id: newId(Date.now()), player_id: newId(Date.now()) })

/** Lobbies that are ready and full of players who have not connected. */
async function reserve(books: Books, namespace_id: string, count: number): Promise<SeatTaken[]> {
  const wish = findRequest({ plan: PLAN })
  const seats = await Promise.all(
    Array.from({ length: count }, () =>
      books.commit(namespace_id, (book, env) => decide.find(book, wish, freshIds(), env)),
    ),
  )
  const lobby_ids = new Set(seats.map((seat) => seat.lobby_id))
  assert.equal(lobby_ids.size, count / SEATS_EACH)
  for (const lobby_id of lobby_ids)
    await books.commit(namespace_id, (book, { now_ms }) => decide.ready(book, lobby_id, now_ms))
  return seats
}

/** How often each player connected and was removed, and that no lobby ever had more than its places. */
async function livesOf(db: pg.Client, namespace_id: string) {
  const lives = new Map<string, { lobby_id: string; connected: number; removed: number }>()
  const taken = new Map<string, number>()
  for (const { changes } of await readJournal(db, namespace_id)) {
    for (const change of changes) {
      if (change.kind === 'player_reserved') {
        const { player_id, lobby_id } = change.player
        lives.set(player_id, { lobby_id, connected: 0, removed: 0 })
        taken.set(lobby_id, (taken.get(lobby_id) ?? 0) + 1)
        assert.ok(taken.get(lobby_id)! <= SEATS_EACH, 'a lobby has more players than places')
      } else if (change.kind === 'player_connected') {
        lives.get(change.player_id)!.connected++
      } else if (change.kind === 'player_removed') {
        assert.equal(change.reason, 'expired')
        const life = lives.get(change.player_id)!
        life.removed++
        taken.set(life.lobby_id, taken.get(life.lobby_id)! - 1)
      }
    }
  }
  return lives
}

const count = (outcomes: readonly string[], code: string): number => outcomes.filter((item) => item === code).length

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}

test('of 10,000 reservations that run out while their players connect and others look for a place, each is connected or freed, once', async (t) => {
  const [WAVES, WAVE] = [40, 250]
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  let now_ms = Date.now()
  const { books } = await openLocalWriter(t, url, { now: () => now_ms })
  let [connected_sum, freed_sum] = [0, 0]
  for (let wave = 0; wave < WAVES; wave++) {
    const namespace_id = newNamespace()
    const seats = await reserve(books, namespace_id, WAVE)
    const deadline_ms = now_ms + DEADLINE_MS
    now_ms = deadline_ms - 1
    // The last millisecond passes in the midst of it: before whichever command comes then.
    let left = Math.floor(Math.random() * 2 * WAVE)
    const commit = (decide: Decide<unknown>): Promise<string> =>
      books
        .commit(namespace_id, (book, env) => {
          if (left-- === 0) now_ms = deadline_ms
          return decide(book, env)
        })
        .then(
          () => 'granted',
          (error: ApiError) => error.code,
        )
    const connects = seats.map(
      ({ player_id, lobby_id }) =>
        () =>
          commit((book, { now_ms: ms }) => decide.connected(book, { player_id, lobby_id, connect_key: null }, ms)),
    )
    const finds = seats.map(() => () => commit((book, env) => decide.find(book, findRequest(), freshIds(), env)))
    // Every commit expires what is due; these commits do nothing else.
    const sweeps = Array.from({ length: 3 }, () => () => commit(() => ({ changes: [], result: null })))
    const order = shuffled([...connects, ...finds, ...sweeps])
    const outcomes = new Map(await Promise.all(order.map(async (call) => [call, await call()] as const)))
    now_ms = deadline_ms
    await books.commit(namespace_id, () => ({ changes: [], result: null }))

    const of = (calls: readonly (() => Promise<string>)[]) => calls.map((call) => outcomes.get(call)!)
    const connected = count(of(connects), 'granted')
    const late = count(of(connects), 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
    assert.equal(connected + late, WAVE)
    const lives = await livesOf(db, namespace_id)
    for (const [index, { player_id }] of seats.entries()) {
      const { connected, removed } = lives.get(player_id)!
      assert.deepEqual([connected, removed], of(connects)[index] === 'granted' ? [1, 0] : [0, 1])
    }
    const found = count(of(finds), 'granted')
    assert.equal(count(of(finds), 'MATCHMAKER_NO_AVAILABLE_LOBBIES'), WAVE - found)
    assert.equal(lives.size, WAVE + found)
    assert.ok(found <= late)
    connected_sum += connected
    freed_sum += late
  }
  assert.equal(connected_sum + freed_sum, WAVES * WAVE)
  // Both happened often: the moment lay anywhere.
  assert.ok(Math.min(connected_sum, freed_sum) > (WAVES * WAVE) / 20, `${connected_sum} ${freed_sum}`)
})

test('after ten minutes without a commit, 1,000 places that ran out are found free at once, and each is freed once', async (t) => {
  const SEATS = 1_000
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  let now_ms = Date.now()
  const now = (): number => now_ms
  const writer = await openLocalWriter(t, url, { now })
  const find = (book: Book, env: Env) => decide.find(book, findRequest(), freshIds(), env)
  const full = { code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES' }
  const old = await reserve(writer.books, namespace_id, SEATS)
  await assert.rejects(writer.books.commit(namespace_id, find), full)
  // In one turn of the loop: no clock of the process has had the time to look for what is due.
  now_ms += 10 * 60_000
  const finds = Array.from({ length: SEATS }, () => writer.books.commit(namespace_id, find))
  const fresh = await Promise.all(finds)
  await assert.rejects(writer.books.commit(namespace_id, find), full)
  const removals = async (seats: readonly SeatTaken[]) => {
    const lives = await livesOf(db, namespace_id)
    return seats.map(({ player_id }) => lives.get(player_id)!.removed)
  }
  assert.deepEqual(await removals(old), new Array(SEATS).fill(1))
  await writer.projection.flush()
  await writer.close()

  // Ten minutes without a matchmaker end no reservation, and its own time with one ends it, once.
  now_ms += 10 * 60_000
  const next = await openLocalWriter(t, url, { now })
  await assert.rejects(next.books.commit(namespace_id, find), full)
  assert.deepEqual(await removals(fresh), new Array(SEATS).fill(0))
  now_ms += DEADLINE_MS
  await until('all to be freed', async () => (await removals(fresh)).every((count) => count > 0))
  const again = Array.from({ length: SEATS }, () => next.books.commit(namespace_id, find))
  assert.equal(new Set((await Promise.all(again)).map((seat) => seat.player_id)).size, SEATS)
  assert.deepEqual(await removals([...old, ...fresh]), new Array(2 * SEATS).fill(1))
})

test('a request that comes first after the deadline gets the place, and its former player is refused as late', async (t) => {
  const url = await createDatabase(t)
  let now_ms = Date.now()
  const { books } = await openLocalWriter(t, url, { now: () => now_ms })
  const namespace_id = newNamespace()
  const [seat] = await reserve(books, namespace_id, SEATS_EACH)
  now_ms += DEADLINE_MS
  const { player_id, lobby_id } = seat!
  const join = books.commit(namespace_id, (book, { now_ms: ms }) =>
    decide.join(book, { ...requestedSeat(), lobby_id }, freshIds(), ms),
  )
  const late = books.commit(namespace_id, (book, { now_ms: ms }) =>
    decide.connected(book, { player_id, lobby_id, connect_key: null }, ms),
  )
  await assert.rejects(late, { code: 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED' })
  assert.equal((await join).lobby_id, lobby_id)
})
