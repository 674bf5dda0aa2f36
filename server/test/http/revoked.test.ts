import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCloudToken, getGameById, revokeGameCloudToken } from '@musterhost/contract'
import { startPlatform } from '../support/platform.ts'
import { outcomesOf } from './steps.ts'

test('tokens that are revoked at the same time are all revoked, and every call is answered', async (t) => {
  const platform = await startPlatform(t)
  const { game_id } = await platform.game()
  const params = { game_id }
  const tokens = await Promise.all(
    Array.from({ length: 20 }, async () => (await platform.client.call(createCloudToken, { params })).token),
  )
  const get = () => outcomesOf(tokens.map((token) => platform.as(token).call(getGameById, { params })))
  assert.deepEqual(await get(), { answered: 20 })
  const revocations = tokens.map((token) => {
    const { token_id } = platform.ctx.keys.verify(token, platform.ctx.now())
    return platform.client.call(revokeGameCloudToken, { params: { game_id, token_id } })
  })
  assert.deepEqual(await outcomesOf(revocations), { answered: 20 })
  assert.deepEqual(await get(), { TOKEN_REVOKED: 20 })
})
