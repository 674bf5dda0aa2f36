// What a deploy sends: counted at the server, killed in the middle, and interrupted by Ctrl-C.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { getGameById } from '@musterhost/contract'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'

const SITE_FILES = 500
const FILE_BYTES = 20_000
/** Requests of a deploy beside its files: the list of 500 files has about 90 bytes and a hash for each. */
const REQUEST_BYTES_MAX = 400_000
const LARGE_FILES = 60
const LARGE_FILE_BYTES = 5_000_000
/** 300 MB in all. */
const LARGE_BYTES = LARGE_FILES * LARGE_FILE_BYTES
/** Requests at once, each of one file: what a kill loses. */
const IN_FLIGHT_BYTES_MAX = 4 * LARGE_FILE_BYTES

const MEBIBYTE = 1024 * 1024

type World = { platform: Platform; proxy: CountingProxy; url: string }

test('what a deploy sends', async (t) => {
  const proxy = await startCountingProxy(t)
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,runner,edge',
    env: { MUSTER_ADVERTISED_HTTP_PORT: String(proxy.port) },
  })
  proxy.target(Number(new URL(platform.edge_url).port))
  const world: World = { platform, proxy, url: `http://localhost:${proxy.port}` }
  await t.test('one changed file of 500 is the only one that is sent', (t) => oneOfMany(t, world))
  await t.test('a deploy of 300 MB that was killed by kill -9 continues', (t) => killed(t, world))
  await t.test('what a proxy in front refuses is sent in shorter parts, or named as its refusal', (t) =>
    behindProxy(t, world),
  )
  await t.test('Ctrl-C says what is kept and how to go on', (t) => interrupted(t, world))
})

async function oneOfMany(t: TestContext, { platform, proxy, url }: World): Promise<void> {
  const text = (index: number): string => `${index} `.padEnd(FILE_BYTES, `file ${index} `)
  const site = Object.fromEntries(Array.from({ length: SITE_FILES }, (_, index) => [`f/${index}.bin`, text(index)]))
  const project = await createProject(t, platform, { url, site })
  const first = await project.deploy('--detach')
  assert.ok(Number(first.sent_bytes) > SITE_FILES * FILE_BYTES)
  assert.ok(proxy.sent_bytes() > SITE_FILES * FILE_BYTES)

  const changed = text(SITE_FILES)
  project.write('site/f/250.bin', changed)
  const before = proxy.sent_bytes()
  const second = await project.deploy('--detach')
  const sent = proxy.sent_bytes() - before
  t.diagnostic(
    `of ${SITE_FILES} files, ${SITE_FILES * FILE_BYTES} bytes: ${sent} bytes arrived at the server, requests included`,
  )
  assert.deepEqual([second.is_new, second.sent_bytes], [true, changed.length])
  assert.ok(sent >= changed.length && sent < changed.length + REQUEST_BYTES_MAX, `${sent} bytes`)

  // The contents are known without the state of the folder too, as in a fresh checkout.
  rmSync(join(project.folder, '.muster'), { recursive: true })
  assert.equal((await project.deploy('--detach')).sent_bytes, 0)
}

/** Files that differ in their first bytes, also from those of another `name`. They take no space on the disk of the test. */
function writeLargeSite({ folder }: DeployedProject, name: string): void {
  mkdirSync(join(folder, 'site'))
  for (let index = 0; index < LARGE_FILES; index++) {
    const file = openSync(join(folder, 'site', `${index}.bin`), 'w')
    writeSync(file, `${name} ${index}`)
    ftruncateSync(file, LARGE_FILE_BYTES)
    closeSync(file)
  }
}

async function killed(t: TestContext, { platform, proxy, url }: World): Promise<void> {
  const project = await createProject(t, platform, { url, site: {} })
  writeLargeSite(project, 'killed')
  const before = proxy.sent_bytes()
  const child = project.muster.start(['deploy', '--detach'], { cwd: project.folder })
  const closed = once(child, 'close')
  child.stderr?.resume()
  await until('a third of the deploy has arrived', () => proxy.sent_bytes() - before > LARGE_BYTES / 3)
  child.kill('SIGKILL')
  await closed
  const first = proxy.sent_bytes() - before
  assert.equal(statSync(join(project.folder, '.muster/deploy.json')).mode & 0o777, 0o600)
  const state = readFileSync(join(project.folder, '.muster/deploy.json'), 'utf8')
  assert.ok(!state.includes(platform.token) && !state.includes('/objects/'), 'the state has no secret')

  const result = await project.deploy('--detach')
  const second = proxy.sent_bytes() - before - first
  t.diagnostic(`300 MB: ${first} bytes before kill -9, ${second} bytes after it`)
  assert.equal(result.is_new, true)
  assert.ok(Number(result.sent_bytes) < LARGE_BYTES)
  assert.ok(first + second < LARGE_BYTES + 2 * IN_FLIGHT_BYTES_MAX, `${first} and ${second} bytes`)
}

async function behindProxy(t: TestContext, { platform, proxy, url }: World): Promise<void> {
  const edge_port = Number(new URL(platform.edge_url).port)
  let body_bytes_max = 0
  let cuts = false
  const limiting = createServer((incoming, outgoing) => {
    if (Number(incoming.headers['content-length'] ?? 0) > body_bytes_max) {
      if (cuts) return incoming.socket.resetAndDestroy()
      const page = '<h1>413 Request Entity Too Large</h1>'
      const headers = { server: 'nginx/1.26', 'content-type': 'text/html', 'content-length': page.length }
      outgoing.writeHead(413, { ...headers, connection: 'close' }).write(page)
      // As nginx does: a connection that is closed with unread bytes is reset, and its response may be lost.
      incoming.once('end', () => outgoing.end()).resume()
      return
    }
    const { method, url: path, headers } = incoming
    const onward = request({ port: edge_port, method, path, headers }, (response) => {
      outgoing.writeHead(response.statusCode!, response.headers)
      response.pipe(outgoing)
    })
    onward.once('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  limiting.listen(0, '127.0.0.1')
  await once(limiting, 'listening')
  t.after(() => limiting.close())
  t.after(() => proxy.target(edge_port))
  proxy.target((limiting.address() as AddressInfo).port)

  const large = randomBytes(7 * MEBIBYTE)
  const project = await createProject(t, platform, { url, site: {} })
  project.write('site/large.bin', large)
  body_bytes_max = 6 * MEBIBYTE
  const sent = await project.run(['deploy', '--json', '--detach'])
  assert.equal(sent.code, 0, sent.stderr)
  assert.ok((JSON.parse(sent.stdout) as { sent_bytes: number }).sent_bytes >= large.length)
  assert.match(
    sent.stderr,
    /status 413 from nginx\/1\.26 at localhost:\d+, not from Muster.*Parts of 5\.0 MiB are tried/s,
  )

  cuts = true
  project.write('site/large.bin', randomBytes(7 * MEBIBYTE))
  const cut = await project.run(['deploy', '--json', '--detach'])
  assert.equal(cut.code, 0, cut.stderr)
  assert.match(cut.stderr, /large\.bin could not be sent after \d attempts: .*Parts of 5\.0 MiB are tried/s)

  cuts = false
  project.write('site/large.bin', randomBytes(2 * MEBIBYTE))
  body_bytes_max = MEBIBYTE
  const refused = await project.run(['deploy', '--detach'])
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /large\.bin was refused: status 413 from nginx\/1\.26 .*client_max_body_size/s)
}

async function interrupted(t: TestContext, { platform, url }: World): Promise<void> {
  const project = await createProject(t, platform, { url, site: {} })
  // The group stores none of these contents, so most of them are still to be sent at the interrupt.
  writeLargeSite(project, 'interrupted')
  const { game } = await platform.client.call(getGameById, { params: { game_id: project.game_id } })
  const child = project.muster.start(['deploy', '--detach'], { cwd: project.folder })
  let output = ''
  let is_interrupted = false
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    if (is_interrupted || !/^send site: \d+%/m.test(output)) return
    is_interrupted = true
    child.kill('SIGINT')
  })
  const [code] = (await once(child, 'close')) as [number | null]
  assert.equal(code, 130, output)
  assert.match(
    output,
    /Interrupted\. Nothing was switched: prod still runs version .*\. What has arrived is kept\.\nContinue: muster deploy\n$/,
  )
  const after = await platform.client.call(getGameById, { params: { game_id: project.game_id } })
  assert.deepEqual(after.game.namespaces, game.namespaces)
}
