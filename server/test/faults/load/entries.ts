// A writer of entries. Each has its own keys. It writes some of them singly, and the others always together.
import { randomUUID } from 'node:crypto'
import { deleteKvBatch, deleteKvEntry, putKvBatch, putKvEntry } from '@musterhost/contract'
import type { LoadContext, Step } from './load.ts'
import { repeat } from './repeat.ts'

const SINGLE_KEYS = 8
const BATCH_KEYS = 4
const BATCH_CHANCE = 0.4
const DELETE_CHANCE = 0.2
const REFUSED_CHANCE = 0.03

export function entryWriter({ platform, history, random }: LoadContext, writer: number): Step {
  const namespace_id = platform.game.namespaces.prod
  const client = platform.as(platform.game.cloud_token)
  const singles = Array.from({ length: SINGLE_KEYS }, (_, number) => `writer-${writer}/single-${number}`)
  const batch = Array.from({ length: BATCH_KEYS }, (_, number) => `writer-${writer}/batch-${number}`)

  const writeOne = async (key: string, value: string | null): Promise<void> => {
    const attempts = await repeat<unknown>(random, (signal) =>
      value === null
        ? client.call(deleteKvEntry, { query: { namespace_id, key }, signal })
        : client.call(putKvEntry, { body: { namespace_id, key, value }, signal }),
    )
    history.record('kv_write', { namespace_id, keys: [key], value }, attempts)
  }
  const writeBatch = async (keys: readonly string[], value: string | null): Promise<void> => {
    const attempts = await repeat<unknown>(random, (signal) =>
      value === null
        ? client.call(deleteKvBatch, { query: { namespace_id, keys: [...keys] }, signal })
        : client.call(putKvBatch, { body: { namespace_id, entries: keys.map((key) => ({ key, value })) }, signal }),
    )
    history.record('kv_write', { namespace_id, keys, value }, attempts)
  }

  return async () => {
    const value = random.chance(DELETE_CHANCE) ? null : randomUUID()
    // An empty key is refused, and with it the whole batch.
    if (random.chance(REFUSED_CHANCE)) await writeBatch([`writer-${writer}/refused`, ''], randomUUID())
    else if (random.chance(BATCH_CHANCE)) await writeBatch(batch, value)
    else await writeOne(random.pick(singles), value)
  }
}
