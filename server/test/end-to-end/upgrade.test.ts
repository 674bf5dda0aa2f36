// `muster upgrade` on two nodes that share a database, one after the other. The checkout is the version before; a copy of it
// with raised versions is the next one. Players play on both nodes during the whole upgrade.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, findLobby, listLobbies } from '@muster/contract'
import { type Client, createClient } from '@muster/contract/client'
import { WebSocket } from 'ws'
import { WIRE_VERSION } from '../../src/compatibility.ts'
import { platformVersion } from '../../src/platform-version.ts'
import { createDatabase } from '../database.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { until } from '../until.ts'
import { startArena } from './arena.ts'

const ROOT = join(import.meta.dirname, '../../..')
const COPIED = ['contract', 'server', 'sdk', 'cli', 'hub', 'examples', 'package.json']
const NEXT_VERSION = '99.0.0'
const ASK_EVERY_MS = 200

test('nodes change to the next version one by one, and a player of each stays connected', async (t) => {
  const DATABASE_URL = await createDatabase(t)
  const env = { DATABASE_URL, MUSTER_NODE: 'a', MUSTER_LOBBY_NETWORK: 'machine' }
  const arena = await startArena(t, { deploy: [], env })
  // Lobbies have users of their own, which must be able to enter it.
  chmodSync(arena.folder, 0o711)
  const folder = temporaryFolder(t)
  cpSync(join(arena.folder, 'keys'), join(folder, 'keys'), { recursive: true })
  // Two runners on one machine would share its network of lobbies. So b has the other roles.
  const of_b = { MUSTER_NODE: 'b', MUSTER_ROLES: 'api,matchmaker,edge', MUSTER_RATE_LIMIT_MATCHMAKER: '0' }
  const other = { ...(await freeSettings(folder)), DATABASE_URL, ...of_b }
  const started = startMuster(other)
  await started.ready
  const origin = new URL(arena.play_url).origin
  const nodes = [arena.settings, other].map((settings) => {
    const port = settings.MUSTER_EDGE_HTTP_PORT!
    return { settings, port, client: createClient({ url: `http://localhost:${port}`, headers: { origin } }) }
  })
  const connections = await Promise.all(nodes.map(({ port, client }) => stayConnected(t, client, port)))
  const asking = askAllTheTime(nodes.map(({ client }) => client))

  const next = copyWithVersion(t, WIRE_VERSION + 2)
  const too_far = await upgrade(next, nodes[0]!.settings)
  assert.equal(too_far.code, 1)
  assert.match(too_far.output, /99\.0\.0 is too far from .*, which runs\. Upgrade to a version between them first/)

  setWireVersion(next, WIRE_VERSION + 1)
  const first = await upgrade(next, nodes[0]!.settings)
  assert.equal(
    first.output,
    `  ok  version   99.0.0 may follow ${platformVersion()}
  ok  tables    nothing to migrate
  ok  roles     api, matchmaker, runner, edge
This node runs 99.0.0.
Next, run muster upgrade on:
  b, which runs ${platformVersion()}
`,
  )
  // Both versions serve, each through its own edge.
  for (const { client } of nodes) await until('the lobbies', () => listOrNull(client))
  const second = await upgrade(next, nodes[1]!.settings)
  assert.match(second.output, /This node runs 99\.0\.0\.\nAll nodes run it\.\n$/)

  for (const connection of connections) await connection.requireOpen()
  const { answers, failures } = await asking.stop()
  assert.deepEqual(failures, [])
  t.diagnostic(`${answers} responses of the matchmakers during two upgrades`)
  assert.ok(answers > 0)
  const again = await upgrade(ROOT, nodes[0]!.settings)
  assert.match(again.output, /runs 99\.0\.0, which is newer than .*restore a backup/)
})

/** A player's WebSocket through the edge of a node. The game's server sends to it all the time. */
async function stayConnected(t: TestContext, client: Client, port: string) {
  const seat = await client.call(findLobby, { body: { game_modes: ['default'] } })
  const token = encodeURIComponent(seat.player.token)
  const socket = new WebSocket(`ws://127.0.0.1:${port}/lobbies/${seat.lobby.lobby_id}/game/?token=${token}`)
  let messages = 0
  let end: string | null = null
  socket.on('message', () => messages++)
  socket.on('error', (error) => {
    end ??= error.message
  })
  socket.on('close', (code) => {
    end ??= `closed with ${code}`
  })
  t.after(() => socket.terminate())
  await once(socket, 'open')
  return {
    async requireOpen(): Promise<void> {
      const before = messages
      await until('messages of the game', () => end !== null || messages > before + 1)
      assert.equal(end, null, 'the connection stays open')
    },
  }
}

/** Null: the client is asked to try again, because a role is being replaced at this moment. */
async function listOrNull(client: Client) {
  try {
    return await client.call(listLobbies, {})
  } catch (error) {
    if (error instanceof ApiError && error.code === 'API_NOT_AVAILABLE') return null
    throw error
  }
}

/** Asks the matchmaker of each node in turn. */
function askAllTheTime(clients: readonly Client[]) {
  const failures: string[] = []
  let answers = 0
  let is_over = false
  const asking = (async () => {
    for (let turn = 0; !is_over; turn++) {
      try {
        if ((await listOrNull(clients[turn % clients.length]!)) !== null) answers++
      } catch (error) {
        failures.push(String(error))
      }
      await delay(ASK_EVERY_MS)
    }
  })()
  return {
    async stop(): Promise<{ answers: number; failures: string[] }> {
      is_over = true
      await asking
      return { answers, failures }
    },
  }
}

/** The checkout as another version: its own modules, and the libraries of the checkout. */
function copyWithVersion(t: TestContext, wire_version: number): string {
  const to = temporaryFolder(t)
  const filter = (path: string): boolean => !path.includes('node_modules')
  for (const name of COPIED) cpSync(join(ROOT, name), join(to, name), { recursive: true, filter })
  const modules = join(to, 'node_modules')
  mkdirSync(join(modules, '@muster'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name !== '@muster') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  for (const name of ['contract', 'server', 'sdk', 'cli', 'hub'])
    symlinkSync(join('../..', name), join(modules, '@muster', name))
  const manifest = join(to, 'server/package.json')
  const raised = readFileSync(manifest, 'utf8').replace(/"version": "[^"]*"/, `"version": "${NEXT_VERSION}"`)
  writeFileSync(manifest, raised)
  setWireVersion(to, wire_version)
  return to
}

function setWireVersion(folder: string, wire_version: number): void {
  const path = join(folder, 'server/src/compatibility.ts')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/WIRE_VERSION = \d+/, `WIRE_VERSION = ${wire_version}`))
}

async function upgrade(folder: string, settings: Record<string, string>): Promise<{ code: number; output: string }> {
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [join(folder, 'cli/src/main.ts'), 'upgrade'], {
    env: { PATH, HOME, ...settings },
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await once(child, 'close')) as [number]
  return { code, output: (await output).join('') }
}
