// What a server that knows nothing of the platform starts with: filled placeholders, files, and numbers of its own.
import assert from 'node:assert'
import { test } from 'node:test'
import { placeholderNames } from '@musterhost/contract'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { openRunner } from './runner-fixture.ts'

const PORTS = { game: { protocol: 'http' as const }, voice: { protocol: 'udp' as const } }
/** Prints its arguments, its environment and the files of its home, which it may write. */
const SERVER = {
  'server.mjs': `
    import { appendFileSync, readFileSync, statSync } from 'node:fs'
    const files = {}
    for (const path of (process.env.FILES ?? '').split(',').filter(Boolean)) {
      const file = process.env.HOME + '/' + path
      files[path] = readFileSync(file, 'utf8')
      appendFileSync(file, 'more')
      if ((statSync(file).mode & 0o777) !== 0o600) files[path] = 'its mode is wrong'
    }
    console.log(JSON.stringify({ args: process.argv.slice(2), env: process.env, files }))
    setInterval(() => {}, 1_000)
    process.on('SIGTERM', () => process.exit(0))`,
}

type Output = { args: string[]; env: Record<string, string>; files: Record<string, string> }

for (const sandbox of ['available', 'off'] as const) {
  const skip = sandbox === 'available' ? (lacking('bwrap') ?? false) : false
  test(`placeholders of arguments, variables and files are filled at the start (sandbox ${sandbox})`, {
    skip,
  }, async (t) => {
    const fixture = await openRunner(t, sandbox)
    await fixture.start()
    const names = [
      ...placeholderNames([
        { name: 'game', port_range: null },
        { name: 'voice', port_range: null },
      ]),
    ]
    const version_id = await fixture.version(SERVER, {
      args: ['node', 'server.mjs', ...names.map((name) => `${name}=\${${name}}`), '$${PORT}', '${OLD_TEXT}'],
      ports: PORTS,
      env: { URL: 'http://${HOST}:${PORT_GAME}/', FILES: 'server.cfg,world/a/map.txt' },
      files: { 'server.cfg': 'port ${PORT_VOICE}\nid "${LOBBY_ID}" é\n', 'world/a/map.txt': '' },
    })
    const edge_ports = [{ name: 'voice', transport: 'udp' as const, port: 26_001 }]
    const lobby_id = await fixture.lobby(version_id, { edge_ports: JSON.stringify(edge_ports) })
    const { ports } = await fixture.run(lobby_id, 'the run starts', ({ start_ts }) => start_ts !== null)
    const output = await until('the server prints', async () => (await fixture.log(lobby_id, 'stdout'))[0])
    const { args, env, files } = JSON.parse(output) as Output

    const filled = new Map(
      args.slice(0, names.length).map((text) => text.split(/=(.*)/s).slice(0, 2) as [string, string]),
    )
    for (const [name, value] of filled) assert.doesNotMatch(value, /\$|^$/, name)
    assert.deepStrictEqual(args.slice(names.length), ['${PORT}', '${OLD_TEXT}'])
    const of = (name: string): string | undefined => filled.get(name)
    const [game, voice] = [String(ports.game!.port), String(ports.voice!.port)]
    assert.deepStrictEqual([of('PORT'), of('PORT_GAME'), of('PORT_VOICE')], [game, game, voice])
    assert.deepStrictEqual([of('HOST'), of('LOBBY_ID'), of('HOME')], ['127.0.0.1', lobby_id, env.HOME])
    assert.deepStrictEqual([of('PUBLIC_HOST_VOICE'), of('PUBLIC_PORT_VOICE')], ['127.0.0.2', '26001'])
    assert.strictEqual(of('PUBLIC_URL_VOICE'), 'udp://127.0.0.2:26001')
    assert.match(of('PUBLIC_HOST_GAME')!, new RegExp(`^${lobby_id}-game\\.lobby\\.local\\.`))
    for (const name of names.filter((name) => /^(PORT|HOST|PUBLIC_)/.test(name)))
      assert.strictEqual(env[name], of(name))
    assert.strictEqual(env.URL, `http://127.0.0.1:${game}/`)
    assert.deepStrictEqual(files, { 'server.cfg': `port ${voice}\nid "${lobby_id}" é\n`, 'world/a/map.txt': '' })
  })
}

test('a config that sets PORT and HOST keeps its values', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const env = { PORT: '80', HOST: '::', PUBLIC_HOST_GAME: 'mine' }
  const ports = { game: { protocol: 'http' as const } }
  const lobby_id = await fixture.lobby(await fixture.version(SERVER, { args: ['node', 'server.mjs'], ports, env }))
  const output = await until('the server prints', async () => (await fixture.log(lobby_id, 'stdout'))[0])
  const { env: seen } = JSON.parse(output) as Output
  assert.deepStrictEqual([seen.PORT, seen.HOST], ['80', '::'])
  assert.notStrictEqual(seen.PUBLIC_HOST_GAME, 'mine')
})

test('a port with a number is refused at the start where lobbies share their network, and the log says why', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const ports = { game: { protocol: 'tcp' as const, port: 7_777 } }
  const version_id = await fixture.version(SERVER, { args: ['node', 'server.mjs'], ports })
  const lobby_id = await fixture.lobby(version_id, {
    edge_ports: JSON.stringify([{ name: 'game', transport: 'tcp', port: 26_001 }]),
  })
  const { exit_reason } = await fixture.run(lobby_id, 'the run ends', ({ exit_ts }) => exit_ts !== null)
  assert.strictEqual(exit_reason, 'no_network')
  assert.match((await fixture.log(lobby_id, 'stderr')).join('\n'), /number 7777.*PORT_GAME/)
})
