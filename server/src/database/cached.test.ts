import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cached } from './cached.ts'

type Harness = { cached: Cached<string | null>; read: (value: string | null) => () => Promise<string | null> }

let now_ms = 0
let read_count = 0
const stale: string[] = []

function start(): Harness {
  now_ms = 0
  read_count = 0
  stale.length = 0
  const cached = new Cached<string | null>({
    entries_max: 2,
    elapsed: () => now_ms,
    ageOf: (value) => (value === null ? null : 100),
    onStale: (_error, key) => stale.push(key),
  })
  const read = (value: string | null) => async () => {
    read_count++
    return value
  }
  return { cached, read }
}

const fail = async (): Promise<string | null> => {
  throw new Error('no database')
}

test('a value is read once for all who ask at the same time, and again when its age is over', async () => {
  const { cached, read } = start()
  assert.deepEqual(await Promise.all([cached.get('a', read('1')), cached.get('a', read('2'))]), ['1', '1'])
  now_ms = 99
  assert.equal(cached.get('a', read('2')), '1', 'at once, without a promise')
  now_ms = 100
  assert.equal(await cached.get('a', read('2')), '2')
  assert.equal(read_count, 2)
})

test('what has no age is not remembered, and the key used longest ago is forgotten first', async () => {
  const { cached, read } = start()
  await cached.get('unknown', read(null))
  assert.equal(cached.peek('unknown'), undefined)
  await cached.get('a', read('1'))
  await cached.get('b', read('1'))
  cached.get('a', read('2'))
  await cached.get('c', read('1'))
  assert.deepEqual([cached.peek('a'), cached.peek('b'), cached.peek('c')], ['1', undefined, '1'])
})

test('a change makes a value read again; without the database the old one is used', async () => {
  const { cached, read } = start()
  await cached.get('a', read('1'))
  cached.expire('a')
  assert.equal(cached.isFresh('a'), false)
  assert.equal(await cached.get('a', fail), '1')
  assert.deepEqual(stale, ['a'])
  assert.equal(await cached.get('a', read('2')), '2')
  cached.expireAll()
  assert.equal(await cached.get('a', read('3')), '3')
  await assert.rejects(async () => cached.get('b', fail), /no database/)
  cached.clear()
  await assert.rejects(async () => cached.get('a', fail), /no database/)
})

test('a read that began before a change is returned, and not remembered', async () => {
  const { cached, read } = start()
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const early = cached.get('a', () => promise)
  cached.expire('a')
  const late = cached.get('a', read('new'))
  resolve('old')
  assert.deepEqual([await early, await late], ['old', 'new'])
  assert.equal(cached.peek('a'), 'new')
})
