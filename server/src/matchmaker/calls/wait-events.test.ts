import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueueWorld } from '../../../test/matchmaker/matching/queue-world.ts'
import { idOf } from '../../../test/matchmaker/plain-requests.ts'
import * as decide from '../book/decide.ts'
import { PLACE_MS } from '../book/matching/matching.ts'
import { Book } from '../book/state.ts'
import { RecentWaits } from '../seats/matching/recent-waits.ts'
import { WaitViews } from '../seats/matching/wait-views.ts'
import { takeMark, type WaitMark, waitNews, wordsOf } from './wait-events.ts'

const CONFIG = { size: { min: 3, max: 3 }, rules: [{ near: 'skill', within: 100 }] }
const ADA = idOf(900_001)
const ada_finds = { identity_id: ADA, attributes: { skill: 0 } }

/** A stream of this identity, which goes on from the index alone. */
function streamOf(world: QueueWorld, identity_id = ADA, every_ms = 1_000) {
  const reader = { views: new WaitViews(new RecentWaits()), namespace_id: 'n', identity_id, every_ms }
  const stream = {
    mark: null as WaitMark | null,
    next(): Record<string, unknown> | null {
      const { mark } = takeMark(wordsOf(stream.mark))
      const news = waitNews(reader, world.book, mark, world.now_ms)
      stream.mark = news.mark
      return news.event === null ? null : (JSON.parse(news.event) as { kind: Record<string, unknown> }).kind
    },
  }
  return stream
}

const waiting = (waited_ms: number, players_waiting: number, players_missing: number) => ({
  matchmaker_waiting: { reason: 'waiting', waited_ms, players_waiting, players_missing, refused_by: [] },
})

test('numbers that change often make one event in the time that the stream asks for, with the newest', () => {
  const world = new QueueWorld(CONFIG)
  const stream = streamOf(world)
  assert.equal(stream.next(), null)
  world.find(ada_finds)
  assert.deepEqual(stream.next(), waiting(0, 1, 2))
  for (let count = 0; count < 3; count++) {
    const { asked } = world.find({ attributes: { skill: 10 } })
    world.pass(333)
    assert.equal(stream.next(), null)
    if (count < 2) world.hangUp(asked)
  }
  world.pass(1)
  assert.deepEqual(stream.next(), waiting(1_000, 2, 1))
  world.pass(5_000)
  assert.equal(stream.next(), null, 'time alone is no event')
})

test('a match is an event at once, as its lobby starts, and another when it is ready or has failed', () => {
  for (const end of ['ready', 'failed'] as const) {
    const world = new QueueWorld(CONFIG)
    const stream = streamOf(world)
    const { asked } = world.find(ada_finds)
    stream.next()
    for (const skill of [10, 20]) world.find({ attributes: { skill } })
    const lobby_id = world.lobbyOf(asked)!
    assert.deepEqual(stream.next(), { matchmaker_waiting: { reason: 'starting', lobby_id } })
    assert.equal(stream.next(), null)
    if (end === 'ready') world.decide(decide.ready(world.book, lobby_id, world.now_ms))
    else world.decide(decide.stop(world.book, lobby_id, 'never_ready', world.now_ms))
    assert.deepEqual(stream.next(), { matchmaker_wait_ended: { reason: end, lobby_id } })
    assert.deepEqual([stream.next(), stream.mark], [null, null])
  }
})

test('a wait that ends without a match says why, also after a restart', () => {
  const world = new QueueWorld(CONFIG)
  const stream = streamOf(world)
  const { asked } = world.find(ada_finds)
  stream.next()
  world.hangUp(asked)
  assert.equal(stream.next(), null)
  world.pass(PLACE_MS)
  world.book.matching.forget(world.now_ms)
  assert.deepEqual(stream.next(), { matchmaker_wait_ended: { reason: 'withdrawn' } })
  world.find(ada_finds)
  stream.next()
  world.book = new Book()
  assert.deepEqual(stream.next(), { matchmaker_wait_ended: { reason: 'unknown' } })
})

test('an index that names the request of another player shows nothing of its match', () => {
  const world = new QueueWorld(CONFIG)
  const { asked } = world.find({ attributes: { skill: 0 } })
  for (const skill of [10, 20]) world.find({ attributes: { skill } })
  assert.notEqual(world.lobbyOf(asked), null)
  const stream = streamOf(world)
  stream.mark = { ticket_id: asked.id, ms: world.now_ms, state: '0'.repeat(20) }
  assert.deepEqual(stream.next(), { matchmaker_wait_ended: { reason: 'unknown' } })
})

test('of several requests of an identity the newest is shown, and then the others', () => {
  const world = new QueueWorld(CONFIG)
  const stream = streamOf(world)
  world.find(ada_finds)
  const newer = world.find({ identity_id: ADA, attributes: { skill: 5_000 } }).asked
  world.pass(1)
  assert.equal(world.book.matching.ofIdentity(ADA)?.player_id, newer.id)
  stream.next()
  world.hangUp(newer)
  world.pass(PLACE_MS)
  assert.ok('matchmaker_wait_ended' in stream.next()!)
  assert.deepEqual(stream.next(), waiting(PLACE_MS + 1, 1, 2))
})
