// A seat has the life that was promised: neither a step of the wall clock nor a crash shortens it or prolongs it.
import assert from 'node:assert'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import type { SeatTaken } from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import type { Decide } from '../../src/matchmaker/shards/pending.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { openDatabaseProxy } from './database-proxy.ts'
import { at, findRequest, lobbyPlan } from './plain-requests.ts'
import { type LocalWriter, newNamespace, openDatabase, openLocalWriter, startOpenWriter } from './writers.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const STEPS_MS = [10 * MINUTE_MS, -10 * MINUTE_MS, HOUR_MS, -HOUR_MS]

test('with a crash every two seconds a seat that never connects expires when it has been served for its time', async (t) => {
  const LIFE_MS = 5_000
  const LIVES_MAX = 6
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const namespace_id = newNamespace()
  const servedMs = async (): Promise<number | null> => {
    const { rows } = await db.query<{ served_ms: string | null }>('select max(served_ms) as served_ms from matchmakers')
    return rows[0]?.served_ms == null ? null : Number(rows[0].served_ms)
  }
  const plan = lobbyPlan({ player_deadline_ms: LIFE_MS, idle_grace_ms: HOUR_MS })
  let seat: SeatTaken | null = null
  let reason: string | null = null
  let lives = 0
  for (; lives < LIVES_MAX && reason === null; lives++) {
    const writer = await startOpenWriter(t, url, 'running')
    if (seat === null) {
      seat = (await writer.call(namespace_id, 'find', findRequest({ plan }))).result as SeatTaken
      await writer.call(namespace_id, 'ready', seat.lobby_id)
    }
    const open_ms = await until('it is served', servedMs)
    await until('it is served for two seconds', async () => (await servedMs())! >= open_ms + 2_000)
    const { players } = await writer.look(namespace_id)
    reason = players.find(({ player_id }) => player_id === seat!.player_id)!.remove_reason
    await writer.kill()
  }
  assert.equal(reason, 'expired')
  assert.ok(lives > 1, 'it outlived a crash')
})

test('among random steps of the wall clock, pauses, crashes and finds every seat lives exactly as long as was promised', async (t) => {
  const OPERATIONS = 400
  const time = createTime()
  const url = await createDatabase(t)
  const namespace_id = newNamespace()
  const promised = new Map<string, number>()
  let writer = await open(t, url, time)
  let [steps, restarts] = [0, 0]
  for (let operation = 0; operation < OPERATIONS; operation++) {
    const dice = Math.random()
    if (dice < 0.3) {
      const { player_id, life_ms } = await takeSeat(writer, namespace_id)
      promised.set(player_id, time.served() + life_ms)
    } else if (dice < 0.65) {
      time.serve(Math.floor(Math.random() * 40_000))
    } else if (dice < 0.95) {
      time.step(pick(STEPS_MS))
      steps++
    } else {
      await writer.close()
      if (Math.random() < 0.5) time.step(pick(STEPS_MS))
      time.away(Math.floor(Math.random() * HOUR_MS))
      writer = await open(t, url, time)
      restarts++
    }
    await assertLives(writer, namespace_id, promised, time.served())
  }
  t.diagnostic(`${promised.size} seats, ${steps} steps, ${restarts} restarts`)
  assert.ok(promised.size > 50 && steps > 50 && restarts > 3)
})

test('an outage of the database takes no time from a seat', async (t) => {
  const url = await createDatabase(t)
  const db = await openDatabase(t, url)
  const time = createTime()
  const namespace_id = newNamespace()
  const proxy = await openDatabaseProxy(t, url)
  const writer = await open(t, proxy.url, time)
  const { player_id, life_ms } = await takeSeat(writer, namespace_id)
  const seat = () => writer.books.book(namespace_id)!.players.get(player_id)!
  const { deadline_ms } = seat()
  await until('it is served until now', async () => {
    const { rows } = await db.query<{ served_ms: string }>('select max(served_ms) as served_ms from matchmakers')
    return Number(rows[0]?.served_ms) === writer.books.nowMs()
  })
  proxy.setAway(true)
  time.serve(life_ms + HOUR_MS)
  await until('the shard has found out', () => writer.books.shardStates().includes('recovering'))
  proxy.setAway(false)
  await until('it writes again', () => writer.books.shardStates().every((state) => state === 'writing'))
  assert.equal(seat().remove_ms, null)
  assert.equal(seat().deadline_ms, deadline_ms + life_ms + HOUR_MS)
})

/** What passes while a writer serves, while none does, and what the wall clock says of it. */
function createTime() {
  const start_ms = Date.now()
  let [served_ms, away_ms, stepped_ms] = [0, 0, 0]
  return {
    now: () => start_ms + served_ms + away_ms + stepped_ms,
    elapsed: () => served_ms + away_ms,
    served: () => served_ms,
    serve(ms: number) {
      served_ms += ms
    },
    away(ms: number) {
      away_ms += ms
    },
    step(ms: number) {
      stepped_ms += ms
    },
  }
}

function open(t: TestContext, url: string, { now, elapsed }: ReturnType<typeof createTime>): Promise<LocalWriter> {
  return openLocalWriter(t, url, { now, elapsed })
}

/** In a lobby of its own that is ready, so that nothing but its own deadline ends it. */
async function takeSeat(writer: LocalWriter, namespace_id: string): Promise<{ player_id: string; life_ms: number }> {
  const life_ms = 1_000 + Math.floor(Math.random() * 5 * MINUTE_MS)
  const plan = lobbyPlan({ player_deadline_ms: life_ms, idle_grace_ms: 0, max_players_normal: 1 })
  const commit = <T>(decide: Decide<T>): Promise<T> => writer.books.commit(namespace_id, decide)
  const { player_id, lobby_id } = await commit((book, { now_ms }) =>
    decide.find(book, findRequest({ plan }), { lobby_id: newId(now_ms), player_id: newId(now_ms) }, at(now_ms)),
  )
  await commit((book, { now_ms }) => decide.ready(book, lobby_id, now_ms))
  return { player_id, life_ms }
}

async function assertLives(
  { books }: LocalWriter,
  namespace_id: string,
  promised: ReadonlyMap<string, number>,
  served_ms: number,
): Promise<void> {
  await books.commit(namespace_id, () => ({ changes: [], result: null }))
  for (const [player_id, end_ms] of promised) {
    const player = books.book(namespace_id)?.players.get(player_id)
    // One that ended long ago is forgotten.
    const is_seated = player !== undefined && player.remove_ms === null
    assert.equal(is_seated, served_ms < end_ms, `${served_ms} of ${end_ms} ms`)
    if (player?.remove_ms != null) assert.ok(player.remove_ms >= player.create_ms)
  }
}

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)]!
}
