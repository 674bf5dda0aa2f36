import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findLobby } from '@musterhost/contract'
import { LEAST_SERVER, tarGz } from '../builds.ts'
import { get } from '../edge/get.ts'
import { startPlatform } from '../platform.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const EXAMPLE = join(ROOT, 'examples/generated-client')
const PAGE = '<h1>made by a stranger</h1>'

test('a client that a public generator makes of openapi.json type-checks, and deploys a game that is served', async (t) => {
  // In the checkout, for the program that stands there imports it; git ignores it.
  await run('npm', ['run', '--silent', 'generate'], { cwd: EXAMPLE })
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['--noEmit', '-p', EXAMPLE])

  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()
  const folder = await mkdtemp(join(tmpdir(), 'muster-stranger-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'index.html'), PAGE)
  const build_folder = await mkdtemp(join(tmpdir(), 'muster-stranger-'))
  t.after(() => rm(build_folder, { recursive: true }))
  const build = join(build_folder, 'build.tar.gz')
  await writeFile(build, await tarGz({ 'server.mjs': LEAST_SERVER }))

  const port = Number(new URL(platform.edge_url).port)
  const { stdout } = await run(process.execPath, [join(EXAMPLE, 'deploy.ts'), build, folder], {
    env: { PATH: process.env.PATH, MUSTER_URL: `http://localhost:${port}`, MUSTER_TOKEN: platform.token },
  })
  const deployed = JSON.parse(stdout) as { name_id: string; public_token: string }

  const page = await get({ port }, '/', { headers: { host: `${deployed.name_id}.cdn.localhost` } })
  assert.deepEqual([page.status, page.body.toString()], [200, PAGE])
  const seat = await platform.as(deployed.public_token).call(findLobby, { body: { game_modes: ['default'] } })
  assert.ok(seat.player.token.length > 0, 'the version is deployed with its game mode')
})
