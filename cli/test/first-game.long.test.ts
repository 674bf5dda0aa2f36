// The commands of docs/first-game.md, from an empty folder to a rollback, typed in each way that the documents name. Beside the
// folders of npm's scripts a shell has its own PATH, and with it the machine's own Node.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freeSettings, startMuster, temporaryFolder } from '../../server/test/supervisor/started.ts'
import { placeCluster } from '../../server/test/support/made-cluster.ts'
import { personsPath } from '../../server/test/support/persons-path.ts'
import { copyPackages } from './packages.ts'

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const COMMAND_MS_MAX = 120_000

/** What is typed once, the line that a shell needs, and what stands for `muster` in every command. */
type Way = { install?: (url: string) => string; line?: string; muster: string }

const WAYS: Record<string, Way> = {
  'as npm run muster --': { muster: `npm --silent --prefix "${CHECKOUT}" run muster --` },
  'with the line of the start for the PATH': {
    line: `export PATH="$PATH:${CHECKOUT}/node_modules/.bin"`,
    muster: 'muster',
  },
  'as the file in node_modules/.bin': { muster: `"${CHECKOUT}/node_modules/.bin/muster"` },
  'installed from the platform': {
    install: (url) => `npm install --silent --global "${url}/cli.tgz"`,
    muster: '"$npm_config_prefix/bin/muster"',
  },
}

test('the first game is made and played in each way in which the documents type the command', async (t) => {
  const data = temporaryFolder(t)
  const settings = await freeSettings(data)
  await placeCluster(data)
  await startMuster(settings).ready
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const MUSTER_TOKEN = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  for (const [index, [name, way]] of Object.entries(WAYS).entries()) {
    await t.test(name, (one) =>
      playFirstGame(one, { way, url, game: `dots-${index}`, MUSTER_TOKEN, is_whole: index === 0 }),
    )
  }
})

type Live = { version_id: string }
/** `is_whole`: to the rollback, which is the same words in each way. */
type Typed = { way: Way; url: string; game: string; MUSTER_TOKEN: string; is_whole: boolean }

async function playFirstGame(t: TestContext, typed: Typed): Promise<void> {
  const { way, url, game, MUSTER_TOKEN, is_whole } = typed
  const home = temporaryFolder(t)
  const env = {
    ...{ PATH: personsPath(), HOME: home, MUSTER_URL: url, MUSTER_TOKEN, NO_COLOR: '1' },
    npm_config_prefix: join(home, 'global'),
    npm_config_update_notifier: 'false',
    npm_config_offline: 'true',
  }
  const folder = join(home, game)
  mkdirSync(env.npm_config_prefix)
  const shell = async (cwd: string, script: string, more = {}): Promise<string> => {
    const options = { cwd, env: { ...env, ...more }, timeout: COMMAND_MS_MAX }
    return (await promisify(execFile)('sh', ['-ec', script], options)).stdout
  }
  const type = (cwd: string, words: string): Promise<string> => shell(cwd, `${way.line ?? ':'}\n${way.muster} ${words}`)
  const begin = performance.now()
  if (way.install !== undefined) await shell(home, way.install(url), { npm_config_offline: 'false' })
  await type(home, `init ${game} --template node-ws`)
  copyPackages(['ws'], join(folder, 'server', 'node_modules'))
  assert.match(await type(folder, 'deploy'), /http:\/\/\S+/)
  const ids = [await lobbyOf(type, folder), await lobbyOf(type, folder)]
  assert.equal(ids[0], ids[1], 'two players are in one lobby')
  if (is_whole) await deployAgain(type, folder)
  t.diagnostic(`${((performance.now() - begin) / 1000).toFixed(1)} s`)
}

type Type = (cwd: string, words: string) => Promise<string>

async function deployAgain(type: Type, folder: string): Promise<void> {
  const file = join(folder, 'server', 'game.js')
  const source = readFileSync(file, 'utf8')
  const changed = source.replace(/SPEED_PER_S = [\d.]+/, 'SPEED_PER_S = 321')
  assert.notEqual(changed, source)
  writeFileSync(file, changed)
  const second = JSON.parse(await type(folder, 'deploy -m faster --json')) as Live
  const back = JSON.parse(await type(folder, 'rollback --yes --json')) as Live & { previous_version_id: string }
  assert.equal(back.previous_version_id, second.version_id)
  assert.notEqual(back.version_id, second.version_id, 'the first version is live again')
}

async function lobbyOf(type: Type, folder: string): Promise<string> {
  const seat = JSON.parse(await type(folder, 'find --json')) as { lobby: { lobby_id: string } }
  return seat.lobby.lobby_id
}
