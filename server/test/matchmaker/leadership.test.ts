// Taking the leadership, when one of its steps fails.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Listener } from '../../src/database/listen.ts'
import { newId } from '../../src/ids.ts'
import { createMatchmaker } from '../../src/matchmaker/start.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { startPlatform } from '../support/platform.ts'

test('a matchmaker that fails while it takes the leadership closes what it opened, and another leads at once', async (t) => {
  const { ctx } = await startPlatform(t, { roles: 'api' })
  const failure = new Error('no subscription to the runs of lobbies')
  const channels: string[] = []
  const listener: Listener = {
    ...ctx.listener,
    on(channel, wake) {
      // One of the last steps: the books are read and written by then.
      if (channel === 'lobby_runs') throw failure
      channels.push(channel)
      const unsubscribe = ctx.listener.on(channel, wake)
      return () => {
        channels.splice(channels.indexOf(channel), 1)
        unsubscribe()
      }
    },
  }
  const errors: unknown[] = []
  const failing = createMatchmaker({ ...ctx, listener, metrics: createMetrics(ctx.config) })
  await failing.catch((error: unknown) => errors.push(error))
  assert.deepEqual(errors, [failure])
  assert.deepEqual(channels, [], 'subscriptions that were left open')

  const other = { ...ctx, config: { ...ctx.config, node_id: newId(ctx.now()) }, metrics: createMetrics(ctx.config) }
  const next = await createMatchmaker(other)
  t.after(() => next.close())
  assert.ok(
    next
      .context()
      .books.shardStates()
      .every((state) => state === 'writing'),
  )
})
