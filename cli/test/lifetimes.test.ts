// Tokens and invites do not live longer than their named maximum, neither by the command line nor by the API.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOUD_TOKEN_TTL_MS_MAX, createCloudToken, INVITE_TTL_MS_MAX } from '@musterhost/contract'
import { startPlatform } from '../../server/test/support/platform.ts'
import { createProject } from './deploy-steps.ts'

const DAY_MS = 24 * 60 * 60_000

test('a cloud token lives at most 365 days, and the flag says so without a call', async (t) => {
  assert.deepEqual([CLOUD_TOKEN_TTL_MS_MAX, INVITE_TTL_MS_MAX], [365 * DAY_MS, 365 * DAY_MS])
  const platform = await startPlatform(t, { roles: 'api' })
  const { muster, game_id } = await createProject(t, platform, { url: platform.api_url })
  for (const args of [
    ['tokens', 'create'],
    ['members', 'invite'],
  ]) {
    const longer = await muster.run([...args, '--expires', '366d'])
    assert.deepEqual([longer.code, /--expires .* It is at most 365d\./.test(longer.stderr)], [2, true], longer.stderr)
  }
  const longest = await muster.run(['tokens', 'create', '--game', game_id, '--expires', '365d'])
  assert.equal(longest.code, 0, longest.stderr)
  const body = { ttl: CLOUD_TOKEN_TTL_MS_MAX + 1 }
  await assert.rejects(platform.client.call(createCloudToken, { params: { game_id }, body }), {
    code: 'VALIDATION_ERROR',
  })
})
