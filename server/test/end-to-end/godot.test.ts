// A native game: the player of examples/godot-client, run by Godot itself without a screen, in a lobby of Arena.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findLobby } from '@musterhost/contract'
import { WebSocket } from 'ws'
import { buildServer } from '../../../examples/arena/build.ts'
import { lacking } from '../run/optional-programs.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const PROJECT = fileURLToPath(new URL('../../../examples/godot-client', import.meta.url))
const GODOT = 'godot3-server'
/** The game itself gives up after 90 seconds, and says why. */
const GODOT_MS_MAX = 120_000

const run = promisify(execFile)

test('a game made with Godot finds a lobby, and enters it over WebSocket, seen by another player', async (t) => {
  const missing = lacking(GODOT)
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const built = await buildServer()
  const files = Object.fromEntries(built.map(({ path, content }) => [path, content.toString()]))
  const game = await platform.game({ files: { ...files, 'server.mjs': "import './server/main.js'" } })
  const godot = await startGodot(t, platform.edge_url)

  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const ada = await watch(t, `${seat.ports.game!.url.replace('http', 'ws')}?name=Ada&token=${seat.player.token}`)
  const told = JSON.parse(await godot(game.public_token)) as unknown
  assert.deepEqual(told, { lobby_id: seat.lobby.lobby_id, players: 2 })
  await until('Ada to have seen the game', () => ada.rosters.includes('Ada Godot'))
  await until('its seat to be free again', () => ada.rosters.at(-1) === 'Ada')

  await assert.rejects(godot('pub_prod.made.up'), /TOKEN_INVALID/)
})

/** What a run of the project prints last. Rejects with what it complained about. */
async function startGodot(t: TestContext, url: string): Promise<(token: string) => Promise<string>> {
  const home = await mkdtemp(join(tmpdir(), 'muster-godot-'))
  t.after(() => rm(home, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: home, LANG: 'en_US.UTF-8', MUSTER_URL: url }
  return async (token) => {
    const options = { env: { ...env, MUSTER_TOKEN: token }, timeout: GODOT_MS_MAX }
    const { stdout } = await run(GODOT, ['--path', PROJECT], options)
    return stdout.trim().split('\n').at(-1) ?? ''
  }
}

/** A player who hears the names of all who are in, each time that somebody comes or goes. */
async function watch(t: TestContext, url: string): Promise<{ rosters: string[] }> {
  const rosters: string[] = []
  const socket = new WebSocket(url)
  t.after(() => socket.terminate())
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as { type: string; players: { name: string }[] }
    if (message.type === 'roster') rosters.push(message.players.map((player) => player.name).join(' '))
  })
  await once(socket, 'open')
  return { rosters }
}
