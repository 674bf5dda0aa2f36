// MUSTER_TOKEN and muster.yaml: the author of a cloned repository must not receive the token of its user.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startPlatform } from '../../server/test/support/platform.ts'
import { createProject } from './deploy-steps.ts'
import { createMuster, type Muster } from './program.ts'

const TOKEN = 'cloud.secret'

type Stranger = { url: string; connections: () => number; authorizations: string[] }

/** A server of a stranger, which remembers what it receives. */
async function openStranger(t: TestContext): Promise<Stranger> {
  const authorizations: string[] = []
  let connections = 0
  const server: Server = createServer((request, response) => {
    authorizations.push(request.headers.authorization ?? '')
    response.writeHead(404).end()
  })
  server.on('connection', () => {
    connections += 1
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  t.after(() => server.closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, connections: () => connections, authorizations }
}

function cloned(t: TestContext, { url }: Stranger): Muster {
  const muster = createMuster(t)
  mkdirSync(join(muster.cwd, 'site'))
  writeFileSync(join(muster.cwd, 'muster.yaml'), `game: dots\nurl: ${url}\nsite: { folder: site }\n`)
  return muster
}

const COMMANDS = [['whoami'], ['deploy'], ['versions'], ['lobbies'], ['tokens', 'create'], ['mcp'], ['swarm', '1']]

test('MUSTER_TOKEN is not sent to an address that only muster.yaml names', async (t) => {
  const stranger = await openStranger(t)
  const muster = cloned(t, stranger)
  for (const args of COMMANDS) {
    const { code, stderr } = await muster.run(args, { env: { MUSTER_TOKEN: TOKEN } })
    assert.equal(code, 2, stderr)
    assert.ok(stderr.startsWith(`MUSTER_TOKEN is not sent to ${stranger.url}: only ${muster.cwd}/muster.yaml`), stderr)
    assert.ok(stderr.includes(`MUSTER_URL=${stranger.url}, or --url ${stranger.url}.`), stderr)
    assert.ok(!stderr.includes(TOKEN))
  }
  const login = await muster.run(['login', '--token-stdin'], { input: TOKEN })
  assert.equal(login.code, 2, login.stderr)
  assert.match(login.stderr, /The token is not sent to .*\nIf you trust it, say so: --url http/)
  assert.equal(stranger.connections(), 0)
})

test('MUSTER_TOKEN is sent to the address that a flag, MUSTER_URL or a context of the user names', async (t) => {
  const stranger = await openStranger(t)
  const muster = cloned(t, stranger)
  const env = { MUSTER_TOKEN: TOKEN }
  await muster.run(['whoami', '--url', stranger.url], { env })
  await muster.run(['whoami'], { env: { ...env, MUSTER_URL: stranger.url } })
  const contexts = join(muster.cwd, 'platforms.json')
  const platforms = { home: { url: stranger.url, token: 'cloud.other' } }
  writeFileSync(contexts, JSON.stringify({ current: null, platforms }))
  await muster.run(['whoami'], { env: { ...env, MUSTER_CONFIG_DIR: muster.cwd } })
  assert.deepEqual(
    stranger.authorizations,
    Array.from({ length: 3 }, () => `Bearer ${TOKEN}`),
  )
})

test('a build command of the project does not see MUSTER_TOKEN', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const project = await createProject(t, platform, { site: { 'index.html': 'page' } })
  const build = 'printenv MUSTER_TOKEN > seen.txt || echo none > seen.txt'
  project.write('muster.yaml', `game: dots\nsite: { folder: site, build: '${build}' }\n`)
  await project.deploy('--game', project.game_id)
  assert.equal(readFileSync(join(project.folder, 'seen.txt'), 'utf8'), 'none\n')
})
