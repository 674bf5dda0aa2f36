import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { completeLinkVerification } from '@musterhost/contract'
import { LOBBY_PORTS } from '../../src/config/edge.ts'
import { platformVersion } from '../../src/wire/platform-version.ts'
import { freePorts } from '../support/free-ports.ts'
import { listeningSockets } from '../support/listening-sockets.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { personsPath } from '../support/persons-path.ts'
import { until } from '../support/until.ts'
import { freeSettings, isThere, processesOf, roleOf, startMuster, statusOf, temporaryFolder } from './started.ts'

const ROLES = ['api', 'matchmaker', 'runner', 'edge'] as const

async function startOn(t: TestContext, { is_first = false } = {}) {
  const folder = temporaryFolder(t)
  if (!is_first) await placeCluster(folder)
  const settings = await freeSettings(folder)
  const muster = startMuster(settings)
  await muster.ready
  return { folder, settings, muster }
}

test('one command serves everything, and Ctrl-C ends everything', async (t) => {
  const { folder, settings, muster } = await startOn(t, { is_first: true })
  const output = muster.output()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must be absent.
  assert.doesNotMatch(output, /[\u0000-\u0009\u000b-\u001f\u007f]/)
  assert.match(output.trim().split('\n').at(-1) ?? '', /^ready in [\d.]+ s/)
  assert.match(output, new RegExp(`API +http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`))
  for (const port of ['MUSTER_API_PORT', 'MUSTER_MATCHMAKER_PORT', 'MUSTER_EDGE_HTTP_PORT'] as const) {
    assert.notEqual(await statusOf(`http://127.0.0.1:${settings[port]}/`), null, port)
  }
  for (const role of ROLES) assert.ok(roleOf(folder, role), role)
  assert.equal(statSync(join(folder, 'admin-token')).mode & 0o777, 0o600)
  assert.equal(statSync(join(folder, 'keys')).mode & 0o777, 0o700)
  assert.match(readFileSync(join(folder, 'admin-token'), 'utf8'), /^access\.[\w.-]+\n$/)
  const ports = JSON.parse(readFileSync(join(folder, 'chosen-ports.json'), 'utf8'))
  assert.equal(ports.MUSTER_EDGE_HTTP_PORT, settings.MUSTER_EDGE_HTTP_PORT, 'commands find the platform by its ports')
  assert.ok(processesOf(folder).some(({ command }) => command.includes('postgres')))
  // The first start prints a link that signs the operator in once.
  const link = /sign in +http:\/\/localhost:\d+\/sign-in\?link=([\w-]{43}) /.exec(output)?.[1]
  assert.ok(link, output)
  const signIn = async () => {
    const address = `http://127.0.0.1:${settings.MUSTER_API_PORT}${completeLinkVerification.path}`
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(address, { method: 'POST', headers, body: JSON.stringify({ link }) })
    await response.body?.cancel()
    return [response.status, response.headers.has('set-cookie')]
  }
  assert.deepEqual(
    [await signIn(), await signIn()],
    [
      [200, true],
      [401, false],
    ],
  )

  // Another line puts the command on the PATH of a shell, whose own Node may be as old as 20.19.
  const line = /command +(export PATH="\$PATH:.*") {3}/.exec(output)?.[1]
  const script = `${line}; cd "${folder}"; command -v muster; muster --version; muster config check; echo $?`
  const typed = await promisify(execFile)('sh', ['-c', script], { env: { PATH: personsPath(), HOME: folder } })
  const command = join(import.meta.dirname, '../../../node_modules/.bin/muster')
  assert.equal(typed.stdout, `${command}\n${platformVersion()}\n2\n`)
  assert.match(typed.stderr, /There is no muster\.yaml/)

  muster.signalGroup('SIGINT')
  assert.deepEqual(await muster.ended, { code: 0, signal: null })
  assert.deepEqual(processesOf(folder), [])
  assert.match(muster.output(), /everything has ended/)
})

test('Ctrl-C during a start leaves no process', async (t) => {
  const folder = temporaryFolder(t)
  const muster = startMuster(await freeSettings(folder))
  await until('PostgreSQL to be starting', () =>
    processesOf(folder).some(({ command }) => /initdb|postgres/.test(command)),
  )
  muster.signalGroup('SIGINT')
  assert.deepEqual(await muster.ended, { code: 0, signal: null })
  assert.deepEqual(processesOf(folder), [])
  assert.doesNotMatch(muster.output(), /^ready/m)
})

test('a second Ctrl-C ends processes that do not stop', async (t) => {
  const { folder, muster } = await startOn(t)
  const api = roleOf(folder, 'api')
  assert.ok(api)
  process.kill(api, 'SIGSTOP')
  let isEnded = false
  void muster.ended.then(() => {
    isEnded = true
  })
  muster.signalGroup('SIGINT')
  // Repeated until the supervisor reacts, because a signal right after the first one counts as the same request.
  await until('it to end', () => {
    if (!isEnded && !muster.output().includes('asked again')) muster.kill('SIGINT')
    return isEnded
  })
  assert.deepEqual(await muster.ended, { code: 1, signal: null })
  assert.match(muster.output(), /asked again: everything is killed/)
  assert.equal(isThere(api), false)
  await until('the rest to end', () => processesOf(folder).length === 0)
})

test('all mistakes of the configuration are reported at once, and nothing is started', async (t) => {
  const folder = temporaryFolder(t)
  const muster = startMuster({
    MUSTER_DATA: folder,
    MUSTER_API_PORT: 'eighty',
    MUSTER_ROLES: 'apj',
    MUSTER_SPEED: '11',
    MUSTER_API_PROT: '8080',
    DATABASE_URL: 'mysql://',
  })
  assert.deepEqual(await muster.ended, { code: 2, signal: null })
  const suggestion = 'MUSTER_API_PROT is not a setting. Did you mean MUSTER_API_PORT?'
  for (const word of ['MUSTER_API_PORT', '"apj"', 'MUSTER_SPEED', 'DATABASE_URL', suggestion])
    assert.ok(muster.output().includes(word), word)
  assert.deepEqual(processesOf(folder), [])
})

test('a start without its database ends at once, and its last lines are the reason', async (t) => {
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  const muster = startMuster({ ...settings, DATABASE_URL: 'postgres://nobody:secret@127.0.0.1:1/none' })
  assert.deepEqual(await muster.ended, { code: 1, signal: null })
  // The modules of the roles were being compiled beside it.
  const reason =
    /PostgreSQL does not respond at 127\.0\.0\.1:1\/none[^\n]*\n +Details may be in [^\n]*supervisor\.log\.$/
  assert.match(muster.output().trim(), reason)
  assert.deepEqual(processesOf(folder), [])
})

test('ports that are taken or configured twice are reported at once, each with its setting', async (t) => {
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  const { MUSTER_API_PORT, MUSTER_MATCHMAKER_PORT, MUSTER_EDGE_HTTP_PORT } = settings
  const holders = [MUSTER_API_PORT, MUSTER_EDGE_HTTP_PORT].map((port) =>
    createServer().listen(Number(port), '127.0.0.1'),
  )
  t.after(() => holders.map((holder) => holder.close()))
  const muster = startMuster(settings)
  assert.deepEqual(await muster.ended, { code: 1, signal: null })
  assert.match(muster.output(), new RegExp(`Port ${MUSTER_API_PORT} is taken .* set MUSTER_API_PORT`))
  assert.match(muster.output(), new RegExp(`Port ${MUSTER_EDGE_HTTP_PORT} is taken .* set MUSTER_EDGE_HTTP_PORT`))
  const twice = startMuster({ ...settings, MUSTER_API_PORT: MUSTER_MATCHMAKER_PORT ?? '' })
  assert.deepEqual(await twice.ended, { code: 1, signal: null })
  assert.match(
    twice.output(),
    new RegExp(`MUSTER_API_PORT and MUSTER_MATCHMAKER_PORT are both ${MUSTER_MATCHMAKER_PORT}`),
  )
  assert.deepEqual(processesOf(folder), [])
})

/** One after the other on one data folder, with a lobby that lives through three lives of the platform. */
test('the lives of a platform', async (t) => {
  const { folder, settings, muster } = await startOn(t)
  const play = /play +(http:\S+)/.exec(muster.output())?.[1]
  assert.ok(play, muster.output())
  const api = /API +(http:\S+)/.exec(muster.output())?.[1]
  assert.ok(api, muster.output())
  const lobby_id = await find(api, play)
  const lobby = processesOf(lobby_id).map(({ pid }) => pid)
  assert.ok(lobby.length > 0)
  t.after(() => until('the lobby to end', () => processesOf(lobby_id).length === 0))
  /** Takes another seat, so that the lobby does not end meanwhile. */
  const stays = async () => assert.equal(await find(api, play), lobby_id)
  let life = muster
  const startAgain = async (): Promise<void> => {
    life = startMuster(settings)
    await life.ready
  }

  await t.test('all parts listen on loopback addresses only, the lobby of the example too', () => {
    const sockets = listeningSockets([life.pid, ...processesOf(folder).map(({ pid }) => pid)])
    const ports = new Set(sockets.map(({ port }) => port))
    for (const [name, port] of Object.entries(settings)) {
      if (name.endsWith('_PORT') && port !== '0') assert.ok(ports.has(Number(port)), name)
    }
    assert.ok(
      sockets.some(({ port }) => port >= LOBBY_PORTS.min && port <= LOBBY_PORTS.max),
      'a port of the lobby',
    )
    assert.ok(sockets.some(({ transport }) => transport === 'udp'))
    for (const { pid, transport, address, port } of sockets) {
      assert.match(address, /^(?:127\.\d+\.\d+\.\d+|(?:0:){7}1)$/, `${transport} ${port} of process ${pid}`)
    }
  })

  await t.test('two platforms never share a data folder', async () => {
    const [api_port, matchmaker, lobby_api, http] = await freePorts(4)
    const second = startMuster({
      ...settings,
      MUSTER_API_PORT: String(api_port),
      MUSTER_MATCHMAKER_PORT: String(matchmaker),
      MUSTER_LOBBY_API_PORT: String(lobby_api),
      MUSTER_EDGE_HTTP_PORT: String(http),
    })
    assert.deepEqual(await second.ended, { code: 1, signal: null })
    assert.match(second.output(), new RegExp(`Another Muster runs on the data folder .*process ${life.pid},`))
    assert.notEqual(await statusOf(`http://127.0.0.1:${settings.MUSTER_API_PORT}/`), null, 'the first still serves')
  })

  await t.test('a killed role is restarted, and so is PostgreSQL', async () => {
    for (const role of ROLES) {
      const before = roleOf(folder, role)
      assert.ok(before)
      process.kill(before, 'SIGKILL')
      await until(`${role} to come back`, () => life.output().includes(`${role} is back`))
      assert.notEqual(roleOf(folder, role), before)
      assert.match(life.output(), new RegExp(`${role} +was ended by SIGKILL; starting it again at once`))
    }
    const postgres = Number(readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
    const roles = ROLES.map((role) => roleOf(folder, role))
    process.kill(postgres, 'SIGKILL')
    await until('PostgreSQL to come back', () => life.output().includes('PostgreSQL is back'))
    await until(
      'the api to answer',
      async () => (await statusOf(`http://127.0.0.1:${settings.MUSTER_API_PORT}/`)) !== null,
    )
    assert.deepEqual(
      ROLES.map((role) => roleOf(folder, role)),
      roles,
      'no role died of it',
    )
  })

  await t.test('the roles of a killed supervisor end, and the next start takes over', async () => {
    await stays()
    const token = readFileSync(join(folder, 'admin-token'), 'utf8')
    const runner = roleOf(folder, 'runner')
    const matchmaker = roleOf(folder, 'matchmaker')
    assert.ok(runner && matchmaker)
    // A suspended role cannot notice that its supervisor is gone.
    process.kill(matchmaker, 'SIGSTOP')
    life.kill('SIGKILL')
    await life.ended
    await until('the runner to end', () => !isThere(runner))
    assert.ok(isThere(matchmaker))
    assert.ok(lobby.every(isThere))

    await startAgain()
    assert.equal(isThere(matchmaker), false)
    assert.match(life.output(), /processes of a start that was killed have ended/)
    assert.equal(readFileSync(join(folder, 'admin-token'), 'utf8'), token)
    for (const role of ROLES) assert.ok(roleOf(folder, role), role)
    await stays()
  })

  await t.test('SIGTERM leaves lobbies running, the next start adopts them, and Ctrl-C ends them too', async () => {
    life.signalGroup('SIGTERM')
    assert.deepEqual(await life.ended, { code: 0, signal: null })
    assert.match(life.output(), /running lobbies are left/)
    assert.equal(roleOf(folder, 'runner'), undefined)
    assert.ok(lobby.every(isThere))

    await startAgain()
    assert.match(life.output(), new RegExp(`play +${play}`), 'the example is not deployed again, but found')
    // Another player gets into the adopted lobby.
    await stays()
    assert.ok(lobby.every(isThere))
    life.signalGroup('SIGINT')
    assert.deepEqual(await life.ended, { code: 0, signal: null })
    assert.deepEqual(processesOf(lobby_id), [])
    assert.deepEqual(processesOf(folder), [])
  })
})

/** Takes a seat in the example game, as its page does at the printed address. Returns the lobby's id. */
async function find(api: string, play: string): Promise<string> {
  const answer = await fetch(`${api}/v1/lobbies/find`, {
    method: 'POST',
    headers: { origin: new URL(play).origin, 'content-type': 'application/json' },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  const seat = (await answer.json()) as { lobby?: { lobby_id: string } }
  assert.ok(seat.lobby, JSON.stringify(seat))
  return seat.lobby.lobby_id
}
