// A few clients listen to as many namespaces as they can.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '@musterhost/contract'
import { openLobbyFeed } from '../../../src/cloud/lobbies/live-feeds.ts'
import { createFeeds } from '../../../src/cloud/lobbies/shared-feeds.ts'
import { startPlatform } from '../../support/platform.ts'

const FEEDS = 256
const CLIENT_FEEDS = 32

test('clients that listen to many namespaces do not keep another client from listening to its own', async (t) => {
  const platform = await startPlatform(t)
  const { ctx } = platform
  const { game_id, namespace_id, version_id } = await platform.game()
  const { rows } = await ctx.pool.query<{ namespace_id: string }>(
    `insert into namespaces (namespace_id, game_id, name_id, display_name, version_id)
      select gen_random_uuid(), $1, 'n' || number, 'N', $2 from generate_series(1, $3::integer) as number
      returning namespace_id`,
    [game_id, version_id, FEEDS + 1],
  )
  const feeds = createFeeds((namespace_id) => openLobbyFeed(ctx, namespace_id))
  const enter = (at: number, client: number) => feeds.enter(rows[at]!.namespace_id, `198.51.100.${client}`)
  const codeOf = (error: unknown): string => {
    assert.ok(error instanceof ApiError)
    return error.code
  }
  const entered: Awaited<ReturnType<typeof enter>>[] = []
  t.after(() => {
    for (const { leave } of entered) leave()
  })
  for (let at = 0; at < FEEDS; at++) entered.push(await enter(at, Math.floor(at / CLIENT_FEEDS)))
  assert.equal(await enter(FEEDS, 0).catch(codeOf), 'API_RATE_LIMIT')

  let woken_count = 0
  for (const { feed } of entered) feed.onNews(() => woken_count++)
  const honest = await feeds.enter(namespace_id, '203.0.113.7')
  entered.push(honest)
  assert.equal(honest.feed.live().snapshot().message.kind, 'snapshot')
  // The listeners of one feed hear that it is over, and come again.
  const over = entered.filter(({ feed }) => {
    try {
      feed.live()
      return false
    } catch (error) {
      return codeOf(error) === 'API_NOT_AVAILABLE'
    }
  })
  assert.deepEqual([over.length, woken_count], [1, 1])
})
