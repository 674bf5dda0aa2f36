import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findLobby } from '@musterhost/contract'
import { get } from '../edge/get.ts'
import { LEAST_SERVER, tarGz } from '../support/builds.ts'
import { startPlatform } from '../support/platform.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const EXAMPLE = 'examples/generated-client'
const COPIED = ['package.json', 'package-lock.json', 'tsconfig.json', 'deploy.ts', 'README.md']
/** Read by the example from the checkout around it. */
const AROUND = ['tsconfig.json', 'contract/openapi.json']
const PAGE = '<h1>made by a stranger</h1>'
const NPM_MS_MAX = 240_000
/** What npm says when neither its cache nor the network has a package. */
const AWAY = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/

test('a client that a public generator makes of openapi.json type-checks, and deploys a game that is served', async (t) => {
  const example = await copyOfExample(t)
  const obstacle = await installPackages(example)
  if (obstacle !== null) return t.skip(obstacle)
  await run('npm', ['run', '--silent', 'generate'], { cwd: example })
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['--noEmit', '-p', example])

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
  const { stdout } = await run(process.execPath, [join(example, 'deploy.ts'), build, folder], {
    env: { PATH: process.env.PATH, MUSTER_URL: `http://localhost:${port}`, MUSTER_TOKEN: platform.token },
  })
  const deployed = JSON.parse(stdout) as { name_id: string; public_token: string }

  const page = await get({ port }, '/', { headers: { host: `${deployed.name_id}.cdn.localhost` } })
  assert.deepEqual([page.status, page.body.toString()], [200, PAGE])
  const seat = await platform.as(deployed.public_token).call(findLobby, { body: { game_modes: ['default'] } })
  assert.ok(seat.player.token.length > 0, 'the version is deployed with its game mode')
})

/** In a folder of its own: its packages are no part of the checkout. */
async function copyOfExample(t: TestContext): Promise<string> {
  const checkout = await mkdtemp(join(tmpdir(), 'muster-stranger-'))
  t.after(() => rm(checkout, { recursive: true }))
  const example = join(checkout, EXAMPLE)
  await mkdir(example, { recursive: true })
  for (const name of COPIED) await cp(join(ROOT, EXAMPLE, name), join(example, name))
  for (const path of AROUND) await cp(join(ROOT, path), join(checkout, path))
  return example
}

/** Returns why the packages cannot be had; null when they are installed. */
async function installPackages(folder: string): Promise<string | null> {
  const args = [
    'ci',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--fetch-retries=1',
    '--fetch-retry-mintimeout=500',
  ]
  try {
    await run('npm', args, { cwd: folder, timeout: NPM_MS_MAX })
    return null
  } catch (error) {
    const code = AWAY.exec((error as { stderr?: string }).stderr ?? '')?.[1]
    if (code === undefined) throw error
    return `npm has the packages of the example neither in its cache nor from its registry (${code})`
  }
}
