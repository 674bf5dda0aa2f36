// A find whose lobby cannot start because the stored build is damaged.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { explainRay, findLobby } from '@musterhost/contract'
import { scrub } from '../../src/cloud/scrub/scrub.ts'
import { changeByte } from '../backup/steps.ts'
import { ask, bearer, JSON_TYPE } from '../http/ask.ts'
import { LEAST_SERVER, uploadBuild } from '../support/builds.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

async function find(platform: Platform, game: TestGame) {
  const { status, text, headers } = await ask(`${platform.matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(game.public_token), ...JSON_TYPE },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  const { code, metadata } = JSON.parse(text) as { code?: string; metadata?: Record<string, unknown> }
  return { status, code, metadata, ray_id: String(headers['x-ray-id']) }
}

test('a find of a damaged build tries one lobby, says why, and succeeds once the same build was uploaded again', async (t) => {
  const files = { 'server.mjs': LEAST_SERVER }
  const env = { MUSTER_SANDBOX: 'off' }
  const platform = await startPlatform(t, { roles: 'api,matchmaker', env })
  const { ctx, client, api_url } = platform
  const game = await platform.game({ files })
  const [file] = await ctx.db.selectFrom('upload_files').select('object_key').execute()
  const path = ctx.objects.localPath(file!.object_key)!
  const archive = await readFile(path)
  await changeByte(path, 0.5, 1)
  // A runner that had seen the deploy would have unpacked the build by now.
  const { database_url, data_dir, lobby_api_port } = ctx.config
  const runner = await startPlatform(t, {
    roles: 'runner',
    env: { ...env, MUSTER_LOBBY_API_PORT: String(lobby_api_port) },
    database_url: database_url!,
    data_dir,
  })

  const refused = await find(platform, game)
  assert.deepEqual([refused.status, refused.code], [400, 'MATCHMAKER_LOBBY_STOPPED'])
  assert.equal(refused.metadata?.exit_reason, 'build_damaged')
  assert.equal((await ctx.db.selectFrom('lobby_runs').select('lobby_id').execute()).length, 1)
  const { lobbies } = (await client.call(explainRay, { params: { ray_id: refused.ray_id } })).explanation
  assert.deepEqual(
    lobbies.map(({ exit_reason, is_ready }) => ({ exit_reason, is_ready })),
    [{ exit_reason: 'build_damaged', is_ready: false }],
  )
  assert.match(lobbies[0]!.log_lines.join('\n'), /Upload the same archive again/)

  await uploadBuild(client, { api_url, game_id: game.game_id, files, archive })
  await until('it is repaired', async () => {
    await scrub(ctx)
    return (await ctx.db.selectFrom('damaged_objects').select('object_key').execute()).length === 0
  })
  // The runner remembers a failure for ten seconds.
  platform.advance(10_001)
  runner.advance(10_001)
  const seat = await find(platform, game)
  assert.deepEqual([seat.status, seat.code], [200, undefined])
  // Its data folder is the platform's, which is removed first.
  await runner.close()
})
