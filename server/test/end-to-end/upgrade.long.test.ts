// `muster upgrade` on two nodes that share a database, one after the other. The checkout is the version before; a copy of it
// with raised versions is the next one. Players play on both nodes during the whole upgrade.
import assert from 'node:assert/strict'
import { chmodSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, listLobbies } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { HAND_OVER_VERSION, WIRE_VERSION } from '../../src/wire/compatibility.ts'
import { platformVersion } from '../../src/wire/platform-version.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { startArena } from './arena.ts'
import { copyWithVersion, ROOT, setHandOver, setWireVersion, stayConnected, upgrade } from './next-version.ts'

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
  // Its edge also speaks the hand-over of the version before.
  setHandOver(next, { min: HAND_OVER_VERSION, max: HAND_OVER_VERSION + 1 })
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
