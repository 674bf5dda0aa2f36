// deploy/Containerfile and deploy/compose.yaml, built and run by a container engine that the test starts. The images are made
// outside; everything then runs in a network namespace with nothing else in it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { EngineClient } from '../../src/runner/drivers/docker/engine.ts'
import { movesBefore, openBrowser, play } from '../end-to-end/browser.ts'
import { lacking } from '../run/optional-programs.ts'
import { makeAuthority } from '../support/certificates.ts'
import { ENGINE_NEEDS, type Engine, run, startEngine } from '../support/container-engine.ts'
import { ip } from '../support/own-network.ts'
import { until } from '../support/until.ts'
import { buildPostgresImage, importNodeImage } from './container-images.ts'

/** Five minutes on a quiet machine. */
const BUILD_AND_RUN_MS_MAX = 1_100_000
/** The images are larger than the memory that temporary folders of tests may be in. */
const DISK = '/var/tmp'
/** Debian's Compose does not know this option. A privileged container without capabilities has the same /proc. */
const UNKNOWN_OPTION = /^( *)security_opt:\n([\s\S]*?) *- systempaths=unconfined\n/m
/** A machine without CAP_SYS_RESOURCE cannot give a container more open files than it has. */
const OPEN_FILES = /^ *ulimits:\n *nofile: \d+\n/m
/** How often the health of a container is checked, so that a test does not wait for the next check. */
const HEALTH_INTERVAL = '2s'
/** How long Compose waits for a response of the engine. Its default is a minute. */
const ENGINE_SECONDS_MAX = '300'
/** Compose reads it after compose.yaml. */
const OFTEN_CHECKED = 'often-checked.yaml'
const OFTEN_CHECKED_SERVICES = `services:
  platform: { healthcheck: { interval: ${HEALTH_INTERVAL} } }
  postgres: { healthcheck: { interval: ${HEALTH_INTERVAL} } }
`
const INSIDE = 'TEST_CONTAINER_FOLDER'
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))
const ARENA = join(CHECKOUT, 'examples/arena/deploy.ts')
const NEEDS = [...ENGINE_NEEDS.docker, 'docker-compose', 'debootstrap', 'ip', 'iptables', 'chromium'] as const
const DOMAINS = { main: 'muster.test', cdn: 'pages.test', job: 'lobbies.test' }
const RESOLVER = '--host-resolver-rules=MAP *.test 127.0.0.1'

const inside = process.env[INSIDE]
if (inside === undefined) test('the container of deploy/', { timeout: BUILD_AND_RUN_MS_MAX }, buildOutside)
else testInside(inside)

function testInside(folder: string): void {
  test('the containers of deploy/', async (t) => {
    const engine = await openInside(t, folder)
    const browser = await openBrowser(t, [RESOLVER, '--ignore-certificate-errors'])
    assert.ok(browser)
    await t.test('the command in Containerfile hosts the example in sandboxes', (one) => runOne(one, engine, browser))
    await t.test('compose.yaml is healthy, hosts a game, and keeps it through an upgrade', (one) =>
      composeTwo(one, engine, browser, join(folder, 'deploy')),
    )
  })
}

async function buildOutside(t: TestContext): Promise<void> {
  const missing = lacking(...NEEDS)
  if (missing !== null) return t.skip(missing)
  const folder = mkdtempSync(join(DISK, 'muster-container-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const engine = await startEngine(t, join(folder, 'engine'), { has_network: false })
  await importNodeImage(engine)
  await buildPostgresImage(engine, folder)
  await buildReleases(engine)
  await engine.end()
  await prepareDeployment(join(folder, 'deploy'))
  await runInside(t, folder)
}

/** The second release differs by its label only, so that all its layers are there already. */
async function buildReleases(engine: Engine): Promise<void> {
  const file = join(CHECKOUT, 'deploy/Containerfile')
  await engine.docker(['build', '--network=host', '--file', file, '--tag', 'muster:first', CHECKOUT])
  const same = { input: Buffer.from('FROM muster:first\n') }
  await engine.docker(['build', '--label', 'release=second', '--tag', 'muster:second', '-'], same)
}

/** The steps at the head of compose.yaml. */
async function prepareDeployment(folder: string): Promise<void> {
  cpSync(join(CHECKOUT, 'deploy'), folder, { recursive: true })
  const example = readFileSync(join(folder, 'muster.env.example'), 'utf8')
  const settings = {
    MUSTER_DOMAIN_MAIN: DOMAINS.main,
    MUSTER_DOMAIN_CDN: DOMAINS.cdn,
    MUSTER_DOMAIN_JOB: DOMAINS.job,
    MUSTER_TLS_CERTIFICATES: '/etc/muster/certificates',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(join(folder, 'muster.env'), example + lines.join(''))
  // The engine starts programs for each published port; two hundred of each kind took it longer than Compose waits.
  const variables = ['POSTGRES_PASSWORD=a-password', 'COMPOSE_PROJECT_NAME=muster', 'MUSTER_EDGE_PORTS=26000-26007']
  writeFileSync(join(folder, '.env'), variables.map((line) => `${line}\n`).join(''))
  const compose = readFileSync(join(folder, 'compose.yaml'), 'utf8')
  writeFileSync(
    join(folder, 'compose.yaml'),
    compose.replace(UNKNOWN_OPTION, '$1privileged: true\n$1security_opt:\n$2').replace(OPEN_FILES, ''),
  )
  writeFileSync(join(folder, OFTEN_CHECKED), OFTEN_CHECKED_SERVICES)
  const { cert, key } = await (await makeAuthority()).issue(
    Object.values(DOMAINS).flatMap((name) => [name, `*.${name}`]),
  )
  mkdirSync(join(folder, 'certificates'))
  writeFileSync(join(folder, 'certificates/all.crt'), cert)
  writeFileSync(join(folder, 'certificates/all.key'), key)
}

/** Runs this file once more, where the addresses and the file of hosts are its own. */
async function runInside(t: TestContext, folder: string): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--net', '--mount', process.execPath, '--test-reporter=spec', import.meta.filename]
  const child = spawn('unshare', args, { env: { ...env, [INSIDE]: folder }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const [code] = await once(child, 'close')
  assert.equal(code, 0, `${basename(import.meta.filename)} inside failed:\n${output}`)
}

async function openInside(t: TestContext, folder: string): Promise<Engine> {
  ip('link set lo up')
  const hosts = join(folder, 'hosts')
  writeFileSync(hosts, `127.0.0.1 localhost ${DOMAINS.main}\n`)
  await run('mount', ['--bind', hosts, '/etc/hosts'], { env: process.env })
  return startEngine(t, join(folder, 'engine'), { has_network: true })
}

/** The `docker run` command at the head of deploy/Containerfile. */
async function runOne(t: TestContext, engine: Engine, browser: Browser): Promise<void> {
  const head = readFileSync(join(CHECKOUT, 'deploy/Containerfile'), 'utf8').replaceAll(/\\\n# +/g, '')
  const command = /^# +docker run (.+)$/m.exec(head)?.[1]
  assert.ok(command, 'Containerfile says how to run the image')
  await engine.docker(['tag', 'muster:first', 'muster'])
  const container = (
    await engine.docker(['run', '--detach', '--health-interval', HEALTH_INTERVAL, ...command.split(' ')])
  ).trim()
  t.after(async () => {
    await engine.docker(['rm', '--force', container])
    // The next platform is another one.
    await engine.docker(['volume', 'rm', 'muster-data'])
  })
  const logs = (): Promise<string> => engine.docker(['logs', container])
  await requireHealthy(engine, container, logs)
  const play_url = await until('the example to be deployed', async () => /http:\/\/arena\.\S+/.exec(await logs())?.[0])
  await playTogether(browser, play_url, async () => {
    const processes = await engine.docker(['top', container, '-eo', 'pid,args'])
    assert.match(processes, /^ *\d+ +bwrap /m, 'the lobby runs in a sandbox')
  })
}

async function composeTwo(t: TestContext, engine: Engine, browser: Browser, cwd: string): Promise<void> {
  const files = ['-f', 'compose.yaml', '-f', OFTEN_CHECKED]
  const env = { ...engine.env, COMPOSE_HTTP_TIMEOUT: ENGINE_SECONDS_MAX }
  const compose: Compose = (...args) => run('docker-compose', [...files, ...args], { env, cwd })
  t.after(() => compose('down').catch(() => undefined))
  const first = await startRelease(engine, compose, 'first')
  const readToken = (): Promise<string> => compose('exec', '-T', 'platform', 'cat', '/var/lib/muster/admin-token')
  const token = await readToken()
  const play_url = await deployArena(token.trim())
  await playTogether(browser, play_url)
  const second = await startRelease(engine, compose, 'second')
  assert.notEqual(second, first, 'the upgrade has replaced the container')
  await playTogether(browser, play_url)
  assert.equal(await readToken(), token)
}

type Compose = (...args: string[]) => Promise<string>

/** Returns the id of the platform's container once it is healthy. */
async function startRelease(engine: Engine, compose: Compose, release: string): Promise<string> {
  await engine.docker(['tag', `muster:${release}`, 'muster'])
  await compose('up', '--detach', '--no-build')
  const container = (await compose('ps', '--quiet', 'platform')).trim()
  await requireHealthy(engine, container, () => compose('logs', '--no-color'))
  return container
}

async function requireHealthy(engine: Engine, container: string, logs: () => Promise<string>): Promise<void> {
  // The command `docker` would take all of a processor if it were started again and again.
  const client = new EngineClient(engine.socket)
  type Found = { State: { Health: { Status: string } } }
  const isHealthy = async (): Promise<boolean> =>
    (await client.call<Found>('GET', `/containers/${container}/json`)).State.Health.Status === 'healthy'
  try {
    await until('the container to be healthy', isHealthy)
  } catch (error) {
    throw new Error(await logs(), { cause: error })
  } finally {
    client.close()
  }
}

/** As a developer deploys, from outside the container. */
async function deployArena(token: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    MUSTER_URL: `https://${DOMAINS.main}`,
    MUSTER_TOKEN: token,
    // The certificate is of the test.
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
  }
  const output = await run(process.execPath, [ARENA], { env, cwd: CHECKOUT })
  const last = JSON.parse(output.trim().split('\n').at(-1)!) as { play_url: string }
  return last.play_url
}

/** Two people play. `meanwhile` runs while both are in the lobby. */
async function playTogether(browser: Browser, play_url: string, meanwhile = async () => {}): Promise<void> {
  const ada = await play(browser, play_url, 'Ada')
  const bob = await play(browser, play_url, 'Bob')
  assert.equal(await bob.lobby_id(), await ada.lobby_id())
  await movesBefore(ada, 'Ada', bob)
  await movesBefore(bob, 'Bob', ada)
  await meanwhile()
  await ada.leave()
  await bob.leave()
}
