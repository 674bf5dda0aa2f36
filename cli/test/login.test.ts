// Who the user is: login by token and by device link, contexts, and what every command does about exit codes, JSON, a missing
// terminal and Ctrl-C.
import assert from 'node:assert/strict'
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  completeDeviceLink,
  createCloudToken,
  createGame,
  createGroup,
  inspectDeviceLink,
  refuseDeviceLink,
} from '@musterhost/contract'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { machineName } from '../src/login/login.ts'
import { createMuster, type Muster, openScreen } from './program.ts'

type World = { platform: Platform; url: string; game_id: string; cloud_token: string }

/** Nothing listens there. */
const AWAY = 'http://127.0.0.1:9'
/** Another user than the one of the tests. */
const NOBODY_UID = 65_534

test('the name of a machine is one that the platform accepts', () => {
  assert.deepEqual(machineName('ada-laptop.local'), { name: 'ada-laptop.local' })
  assert.deepEqual(machineName("Ada's Mac\n"), { name: 'Ada-s-Mac' })
  assert.deepEqual(machineName('---'), {})
  assert.equal(machineName('a'.repeat(300)).name?.length, 64)
})

test('login, contexts and refusals of the command line', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { group_id } = await platform.client.call(createGroup, { body: { display_name: 'Developers' } })
  const { game_id } = await platform.client.call(createGame, {
    body: { display_name: 'Arena', developer_group_id: group_id },
  })
  const { token } = await platform.client.call(createCloudToken, { params: { game_id } })
  const world: World = { platform, url: platform.edge_url, game_id, cloud_token: token }

  await t.test('a token from standard input logs in, and is stored for its user only', (t) => tokenLogin(t, world))
  await t.test('a token goes only to the address that it was stored for', (t) => tokenStaysHome(t, world))
  await t.test('several platforms are several contexts', (t) => contexts(t, world))
  await t.test('muster.yaml, the environment and flags choose the platform in this order', (t) => order(t, world))
  await t.test("the operator's own machine needs no login", (t) => operator(t, world))
  await t.test('a device link logs in when a person confirms it', (t) => deviceLink(t, world))
  await t.test('a refused device link exits with 3', (t) => refusedLink(t, world))
  await t.test('Ctrl-C ends a login with 130', (t) => interrupted(t, world))
  await t.test('wrong usage exits with 2 and says what is meant', (t) => usage(t))
  await t.test('an error of the platform has its ray id and its page', (t) => refusals(t, world))
})

async function tokenLogin(t: TestContext, { platform, url, game_id, cloud_token }: World): Promise<void> {
  const muster = createMuster(t)
  const login = await muster.run(['login', '--url', url, '--token-stdin'], { input: `${cloud_token}\n` })
  assert.equal(login.code, 0, login.stderr)
  assert.ok(login.stderr.startsWith(`Logging in to ${url}\n`))
  assert.match(login.stderr, /as a program of the game arena \(cloud token\)/)
  assert.ok(!(login.stderr + login.stdout).includes(cloud_token))
  assert.equal(statSync(join(muster.cwd, 'contexts/platforms.json')).mode & 0o777, 0o600)
  assert.deepEqual(await muster.json(['whoami']), { url, agent: { game_cloud: { game_id } } })
  const admin = await muster.run(['whoami'], { env: { MUSTER_TOKEN: platform.token } })
  assert.match(admin.stdout, /you are: +an administrator \(token test\)/)

  const refused = await muster.run(['login', '--url', url, '--token-stdin', '--name', 'bad'], { input: 'nonsense' })
  assert.equal(refused.code, 3)
  const empty = await muster.run(['login', '--url', url, '--token-stdin'])
  assert.deepEqual([empty.code, empty.stderr.includes('Standard input is empty')], [2, true])
  assert.equal((await muster.run(['logout'])).code, 0)
  assert.deepEqual(await muster.json(['context', 'list']), { contexts: [] })
  assert.equal((await muster.run(['whoami'])).code, 2)
}

async function tokenStaysHome(t: TestContext, { url, cloud_token }: World): Promise<void> {
  const muster = createMuster(t)
  await muster.run(['login', '--url', url, '--token-stdin'], { input: cloud_token })
  const other = await muster.run(['whoami', '--url', AWAY])
  assert.equal(other.code, 3)
  assert.match(other.stderr, /You are not logged in to http:\/\/127\.0\.0\.1:9\./)
  writeFileSync(join(muster.cwd, 'muster.yaml'), `url: ${AWAY}\n`)
  assert.equal((await muster.run(['whoami'])).code, 3)
}

async function contexts(t: TestContext, { platform, url, cloud_token }: World): Promise<void> {
  const muster = createMuster(t)
  await muster.run(['login', '--url', url, '--token-stdin', '--name', 'ci'], { input: cloud_token })
  assert.equal((await muster.run(['context', 'add', 'admin', '--url', url], { input: platform.token })).code, 0)
  const list = await muster.run(['context', 'list'])
  assert.match(list.stdout, /^ +CONTEXT +PLATFORM\n\* +ci +http.*\n +admin +http/)
  assert.deepEqual(await muster.json(['context', 'use', 'admin']), { name: 'admin', url, is_current: true })
  assert.deepEqual(await muster.json(['whoami']), { url, agent: { access_token: { name: 'test' } } })
  const misspelt = await muster.run(['whoami', '--context', 'admim'])
  assert.deepEqual([misspelt.code, misspelt.stderr.includes('Did you mean admin?')], [1, true])
  assert.equal((await muster.run(['context', 'remove', 'admin'])).code, 0)
  const taken = await muster.run(['login', '--url', AWAY, '--token-stdin', '--name', 'ci'], { input: 'x' })
  assert.deepEqual([taken.code, taken.stderr.includes('is of another platform')], [2, true])
}

async function order(t: TestContext, { url, cloud_token }: World): Promise<void> {
  const muster = createMuster(t, { MUSTER_TOKEN: cloud_token })
  writeFileSync(join(muster.cwd, 'muster.yaml'), `url: ${AWAY}\n`)
  const away = await muster.run(['whoami'], { env: { MUSTER_URL: AWAY } })
  assert.equal(away.code, 1)
  assert.match(away.stderr, /The platform at http:\/\/127\.0\.0\.1:9 cannot be reached/)
  assert.equal((await muster.run(['whoami'], { env: { MUSTER_URL: url } })).code, 0)
  assert.equal((await muster.run(['whoami', '--url', url], { env: { MUSTER_URL: AWAY } })).code, 0)
  writeFileSync(join(muster.cwd, 'muster.yaml'), 'url: [\n')
  const damaged = await muster.run(['whoami'])
  assert.equal(damaged.code, 1)
  assert.match(damaged.stderr, /\d+:\d+ YAML: /)
}

async function operator(t: TestContext, { platform, url }: World): Promise<void> {
  const muster = createMuster(t, {
    MUSTER_DATA: platform.data_dir,
    MUSTER_DOMAIN_MAIN: 'localhost',
    MUSTER_EDGE_HTTP_PORT: new URL(url).port,
  })
  writeFileSync(join(platform.data_dir, 'admin-token'), `${platform.token}\n`)
  const who = await muster.run(['whoami'])
  assert.equal(who.code, 0, who.stderr)
  assert.match(who.stdout, /the operator's token of this machine/)

  // npm start in the checkout has made its data folder there, and the person is in the folder of a game.
  const relative = { MUSTER_DATA: basename(platform.data_dir), npm_lifecycle_event: 'muster', INIT_CWD: muster.cwd }
  const elsewhere = await muster.run(['whoami'], { cwd: dirname(platform.data_dir), env: relative })
  assert.match(elsewhere.stdout, /the operator's token of this machine/, elsewhere.stderr)

  // The same for `muster` of a checkout on the PATH, whose launcher names the checkout.
  const launched = { MUSTER_DATA: basename(platform.data_dir), MUSTER_CHECKOUT: dirname(platform.data_dir) }
  const from_game = await muster.run(['whoami'], { env: launched })
  assert.match(from_game.stdout, /the operator's token of this machine/, from_game.stderr)

  // `muster start` in a folder, then `muster init dots`, `cd dots` and further down.
  const below = { MUSTER_DATA: basename(platform.data_dir) }
  const game = mkdtempSync(join(dirname(platform.data_dir), 'game-'))
  t.after(() => rmSync(game, { recursive: true }))
  mkdirSync(join(game, 'server'))
  // Without a setting of the ports, as where an ordinary user's platform has taken 8000 in place of 80.
  const ports = { MUSTER_EDGE_HTTP_PORT: new URL(url).port, MUSTER_EDGE_HTTPS_PORT: '8443' }
  writeFileSync(join(platform.data_dir, 'chosen-ports.json'), JSON.stringify(ports))
  const unset = await muster.run(['whoami'], { cwd: game, env: { ...below, MUSTER_EDGE_HTTP_PORT: '' } })
  assert.match(
    unset.stdout,
    new RegExp(`localhost:${new URL(url).port}[^]*the operator's token of this machine`),
    unset.stderr,
  )
  for (const cwd of [game, join(game, 'server')]) {
    const in_game = await muster.run(['whoami'], { cwd, env: below })
    assert.match(in_game.stdout, /the operator's token of this machine/, in_game.stderr)
  }
  // A platform that the checkout ran before is another one, and has stopped.
  const checkout = mkdtempSync(join(dirname(platform.data_dir), 'checkout-'))
  t.after(() => rmSync(checkout, { recursive: true }))
  mkdirSync(join(checkout, below.MUSTER_DATA))
  writeFileSync(join(checkout, below.MUSTER_DATA, 'admin-token'), 'access.of-another-platform\n')
  const beside = await muster.run(['whoami'], { cwd: game, env: { ...below, MUSTER_CHECKOUT: checkout } })
  assert.match(beside.stdout, /the operator's token of this machine/, beside.stderr)
  if (process.getuid?.() !== 0) return
  chownSync(join(platform.data_dir, 'admin-token'), NOBODY_UID, NOBODY_UID)
  const planted = await muster.run(['whoami'], { cwd: game, env: below })
  assert.match(
    planted.stderr,
    /No platform is chosen/,
    'a token that another user laid above the folder does not count',
  )
}

async function deviceLink(t: TestContext, { platform, url, game_id }: World): Promise<void> {
  const muster = createMuster(t)
  const screen = openScreen(t, muster, ['login', '--url', url])
  if (screen === null) return
  await screen.shows('number …')
  const device_link_token = linkOn(screen.text())
  const asked = await platform.client.call(inspectDeviceLink, { query: { device_link_token } })
  assert.deepEqual(asked.name, machineName(hostname()).name, 'the person sees the name of this machine')
  await platform.client.call(completeDeviceLink, { body: { device_link_token, game_id } })
  assert.equal(await screen.ended, 0, screen.text())
  assert.match(screen.text(), /Logged in to .* as a program of the game arena/)
  assert.deepEqual(await muster.json(['whoami']), { url, agent: { game_cloud: { game_id } } })
}

async function refusedLink(t: TestContext, { platform, url }: World): Promise<void> {
  const screen = openScreen(t, createMuster(t), ['login', '--url', url])
  if (screen === null) return
  await screen.shows('number …')
  await platform.client.call(refuseDeviceLink, { body: { device_link_token: linkOn(screen.text()) } })
  assert.equal(await screen.ended, 3, screen.text())
  assert.match(screen.text(), /The link was refused, or has expired\.[\s\S]*Ray id: /)
}

async function interrupted(t: TestContext, { url }: World): Promise<void> {
  const muster = createMuster(t)
  const screen = openScreen(t, muster, ['login', '--url', url])
  if (screen === null) return
  await screen.shows('number …')
  screen.ctrlC()
  assert.equal(await screen.ended, 130, screen.text())
  const asking = openScreen(t, muster, ['login'])!
  await asking.shows('Address of the platform:')
  asking.ctrlC()
  assert.equal(await asking.ended, 130, asking.text())
}

async function usage(t: TestContext): Promise<void> {
  const muster: Muster = createMuster(t)
  const command = await muster.run(['lgoin'])
  assert.deepEqual([command.code, command.stderr.includes('Did you mean login?')], [2, true])
  const option = await muster.run(['login', '--ulr', 'x'])
  assert.deepEqual([option.code, option.stderr.includes('Did you mean --url?')], [2, true])
  const address = await muster.run(['login', '--url', 'ftp://x', '--token-stdin'], { input: 'x' })
  assert.deepEqual([address.code, address.stderr.includes('--url is not the address of a platform')], [2, true])
  for (const args of [['login', '--url', AWAY], ['login']]) {
    const asking = await muster.run(args)
    assert.equal(asking.code, 2)
    assert.match(asking.stderr, /--token-stdin|--url URL/)
  }
  assert.deepEqual([(await muster.run(['--version'])).code, (await muster.run(['--help'])).code], [0, 0])
}

async function refusals(t: TestContext, { url }: World): Promise<void> {
  const muster = createMuster(t, { MUSTER_URL: url, MUSTER_TOKEN: 'nonsense' })
  const text = await muster.run(['whoami'])
  assert.equal(text.code, 3)
  assert.match(
    text.stderr,
    /\nLog in again: muster login\. .*MUSTER_TOKEN.*\nTOKEN_INVALID: http.*\/docs\/errors\/TOKEN_INVALID\nRay id: [0-9a-f-]{36}\n$/,
  )
  const { code, stdout, stderr } = await muster.run(['whoami', '--json'])
  assert.deepEqual([code, stdout], [3, ''])
  const { error } = JSON.parse(stderr) as { error: Record<string, unknown> }
  assert.deepEqual(Object.keys(error).sort(), ['code', 'documentation', 'message', 'metadata', 'ray_id'])
}

/** The token in the address of the page. */
function linkOn(text: string): string {
  const url = new URL(/https?:\/\/\S+/.exec(text.slice(text.indexOf('choose a game')))![0])
  return decodeURIComponent(url.hash === '' ? url.pathname.split('/').at(-1)! : url.hash.slice(1))
}
