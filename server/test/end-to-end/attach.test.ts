// A game server that knows nothing of the platform, deployed with musterhost-sdk/attach beside it, and played through the edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findLobby } from '@musterhost/contract'
import { WebSocket } from 'ws'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** Says to each player how many connections it has seen. */
const SERVER = `
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
const server = createServer((request, response) => response.end('Hello.'))
let count = 0
new WebSocketServer({ server }).on('connection', (socket) => socket.send(String(++count)))
server.listen(process.env.PORT ?? 3000)
`

test('an unchanged server is deployed with attach: players get in by their token, and nobody else', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game({
    files: { 'server.mjs': SERVER, ...libraryFiles(), ...sdkFiles() },
    docker: {
      args: ['node', '--import', 'musterhost-sdk/attach', 'server.mjs'],
      ports: { game: { protocol: 'http' } },
    },
  })
  const [ada, bob] = [await find(), await find()]
  assert.equal(ada.lobby.lobby_id, bob.lobby.lobby_id)
  const url = ada.ports.game!.url

  assert.equal(await statusOfUpgrade(url), 401)
  assert.equal(await statusOfUpgrade(`${url}?token=player.of.somebody`), 401)
  assert.equal((await fetch(url)).status, 401)
  assert.equal(await (await fetch(`${url}?player_token=${ada.player.token}`)).text(), 'Hello.')

  const socket = await enter(`${url}?token=${ada.player.token}`)
  assert.equal(socket.first, '1', 'the server has seen nobody else')
  assert.equal((await enter(`${url}?token=${bob.player.token}`)).first, '2')
  assert.equal(await leaveReason(ada.player.token), null)

  socket.close()
  await until('the seat to be given back', async () => (await leaveReason(ada.player.token)) === 'disconnected')
  assert.equal(await statusOfUpgrade(`${url}?token=${ada.player.token}`), 401, 'the token has been used')

  function find() {
    return game.player.call(findLobby, { body: { game_modes: ['default'] } })
  }

  async function enter(address: string) {
    const socket = new WebSocket(address.replace('http', 'ws'))
    t.after(() => socket.terminate())
    const [message] = await once(socket, 'message')
    return { first: String(message), close: () => socket.close() }
  }

  /** As the platform knows it; null while the player has the seat. */
  async function leaveReason(token: string): Promise<string | null> {
    const claims = platform.ctx.keys.verify(token, platform.ctx.now())
    assert.ok(claims.kind === 'player')
    const row = await platform.ctx.db
      .selectFrom('players')
      .where('player_id', '=', claims.player_id)
      .select('remove_reason')
      .executeTakeFirst()
    return row?.remove_reason ?? null
  }
})

async function statusOfUpgrade(url: string): Promise<number | undefined> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  const [, response] = await once(socket, 'unexpected-response')
  response.resume()
  return response.statusCode
}

/** What `npm install ws` leaves in the folder. */
function libraryFiles(): Record<string, string> {
  const folder = join(ROOT, 'node_modules/ws')
  const names = globSync('{package.json,index.js,wrapper.mjs,lib/*.js}', { cwd: folder })
  return Object.fromEntries(names.map((name) => [`node_modules/ws/${name}`, readFileSync(join(folder, name), 'utf8')]))
}

/** What is installed with musterhost-sdk; sdk/src/package.test.ts installs the package itself. */
function sdkFiles(): Record<string, string> {
  const folder = join(ROOT, 'sdk/src')
  const names = globSync('*.ts', { cwd: folder, exclude: ['*.test.ts', 'test-*.ts'] })
  const files = names.map((name) => {
    const text = stripTypeScriptTypes(readFileSync(join(folder, name), 'utf8'))
    const path = `node_modules/musterhost-sdk/${name.replace(/ts$/, 'js')}`
    return [path, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")] as const
  })
  const manifest = { name: 'musterhost-sdk', type: 'module', exports: { './attach': './attach.js' } }
  return { ...Object.fromEntries(files), 'node_modules/musterhost-sdk/package.json': JSON.stringify(manifest) }
}
