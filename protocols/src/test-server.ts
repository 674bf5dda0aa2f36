// Serves an endpoint on loopback for a test, waits for what happens, and makes the same random numbers in each run.
import type { TestContext } from 'node:test'
import type { ProtocolEndpoint } from './protocol.ts'
import { listenForOne, ProtocolSockets } from './serve.ts'

const WAIT_MS_MAX = 10_000

/** Returns the port. The endpoint and its sockets are closed when the test ends. */
export async function serveForTest(t: TestContext, endpoint: ProtocolEndpoint): Promise<number> {
  const sockets = new ProtocolSockets()
  const { server, port } = await listenForOne(sockets, endpoint, { host: '127.0.0.1', port: 0 })
  t.after(() => {
    endpoint.close()
    sockets.forget(endpoint)
    server.close()
  })
  return port
}

export async function until(what: string, condition: () => boolean): Promise<void> {
  const end = performance.now() + WAIT_MS_MAX
  while (!condition()) {
    if (performance.now() > end) throw new Error(`Not within ${WAIT_MS_MAX} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** Whole numbers from 0 to `below` - 1. */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** JSON that a broken or hostile server may send: any shape, with names that mean something here and there. */
export function randomJson(random: (below: number) => number, names: readonly string[], depth = 3): unknown {
  const kind = random(depth === 0 ? 6 : 8)
  if (kind === 0) return null
  if (kind === 1) return random(2) === 0
  if (kind === 2) return random(2 ** 31) - 2 ** 30
  if (kind === 3) return names[random(names.length)]
  if (kind === 4) return 'x'.repeat(random(40))
  if (kind === 5) return ['', '\u0000', '__proto__', '../..', '1e999', '💥'][random(6)]
  const length = random(4)
  if (kind === 6) return Array.from({ length }, () => randomJson(random, names, depth - 1))
  const entries = Array.from({ length: length + 1 }, () => [
    names[random(names.length)] ?? '',
    randomJson(random, names, depth - 1),
  ])
  return Object.fromEntries(entries)
}
