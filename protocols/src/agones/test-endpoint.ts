// An Agones endpoint on a port of its own, for tests.
import type { TestContext } from 'node:test'
import type { LobbyFacts } from '../lobby.ts'
import type { ProtocolOptions } from '../protocol.ts'
import { listenForOne, ProtocolSockets } from '../serve.ts'
import { TestLobby } from '../test-lobby.ts'
import { openAgones } from './agones.ts'
import type { HealthRules } from './health.ts'

/** Counters and lists of the conformance test of Agones. */
const DECLARED: ProtocolOptions = {
  counters: { rooms: { count: 1, capacity: 10 } },
  lists: { players: { values: ['test0', 'test1', 'test2'], capacity: 100 } },
}

export async function startEndpoint(
  t: TestContext,
  {
    options = DECLARED,
    rules,
    facts,
    sockets = new ProtocolSockets(),
  }: { options?: ProtocolOptions; rules?: HealthRules; facts?: Partial<LobbyFacts>; sockets?: ProtocolSockets } = {},
) {
  // The clock of the tests runs, so that the server was started just now.
  const lobby = new TestLobby({ start_ts: Date.now(), ...facts })
  const endpoint = openAgones(lobby, options, rules)
  const { server, port } = await listenForOne(sockets, endpoint, { host: '127.0.0.1', port: 0 })
  t.after(async () => {
    endpoint.close()
    sockets.forget(endpoint)
    await new Promise((resolve) => server.close(resolve))
  })
  return { lobby, endpoint, port, url: `http://127.0.0.1:${port}` }
}

const WAIT_MS_MAX = 10_000
const LOOK_MS = 5

/** Waits until the condition holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + WAIT_MS_MAX
  while (!holds()) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
