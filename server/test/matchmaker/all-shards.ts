// All shards for one writer, also those of an earlier one: as the process of a node that starts again.
import type { Pool } from 'pg'
import { newId } from '../../src/ids.ts'
import type { Books } from '../../src/matchmaker/shards/books.ts'
import * as leases from '../../src/matchmaker/shards/lease.ts'

const BEAT_MS = 1_000
const NODE = { node_id: 'writers', process: { number: 0, count: 1 }, address: '' }

/** Resolves when all shards are read. Returns a function that ends the heartbeat, with a last one. */
export async function holdAllShards(pool: Pool, books: Books): Promise<() => Promise<void>> {
  const writer = newId(Date.now())
  await leases.register(pool, { writer, ...NODE, is_restart: true }, (reached) => books.time.begin(reached))
  const served: number[] = []
  const renew = async (): Promise<void> => {
    const served_ms = books.servedNow(served)
    const book_ms = books.nowMs()
    await leases.beat(pool, { writer, book_ms, served_ms, is_leaving: false })
    if (served_ms !== null) books.time.noteServed(served_ms)
  }
  const { holders } = await leases.beat(pool, {
    ...{ writer, book_ms: books.nowMs(), served_ms: null, is_leaving: false },
  })
  const free = holders.flatMap((holder, shard) => (holder === null ? [{ shard, from: null, seen: null }] : []))
  if (free.length > 0) await leases.takeLeases(pool, writer, free)
  const times = await leases.servedTimes(pool, writer, [...holders.keys()])
  await Promise.all([...times].map(([shard, served_ms]) => books.take(shard, served_ms)))
  await leases.markServed(pool, writer, [...times.keys()])
  served.push(...times.keys())
  const timer = setInterval(() => void renew().catch(() => {}), BEAT_MS)
  return async () => {
    clearInterval(timer)
    await renew().catch(() => {})
  }
}
