import assert from 'node:assert'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { HALF_CLOSED_TOTAL_MS_MAX } from './limits.ts'
import { splice } from './splice.ts'

const TIMEOUT = { timeout: 20_000 }

/** The two sockets of one connection: the connecting side and the accepting side. */
async function pair(t: TestContext): Promise<[dialled: Socket, accepted: Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dialled = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
  const [accepted] = (await once(server, 'connection')) as [Socket]
  server.close()
  for (const socket of [dialled, accepted]) {
    socket.on('error', () => {})
    t.after(() => socket.destroy())
  }
  return [dialled, accepted]
}

/** A client, the edge's two sockets, and a lobby's server. */
async function spliced(t: TestContext): Promise<{ client: Socket; at_edge: Socket; to_lobby: Socket; lobby: Socket }> {
  const [client, at_edge] = await pair(t)
  const [to_lobby, lobby] = await pair(t)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  splice(at_edge, to_lobby)
  return { client, at_edge, to_lobby, lobby }
}

for (const [who, of] of [
  ['a client', 'its server'],
  ['a server', 'its client'],
] as const) {
  test(`${who} that has ended its side and never reads is ended, though ${of} sends on`, TIMEOUT, async (t) => {
    const { client, at_edge, to_lobby, lobby } = await spliced(t)
    const [ended, towards, other] = who === 'a client' ? [client, at_edge, lobby] : [lobby, to_lobby, client]
    other.resume()
    ended.pause()
    ended.end('x')
    await once(other, 'end')
    const STEPS = 10
    for (let step = 1; step < STEPS; step++) {
      other.write('still here')
      await until(() => towards.bytesWritten === 10 * step)
      t.mock.timers.tick(HALF_CLOSED_TOTAL_MS_MAX / STEPS)
      assert.deepStrictEqual([at_edge.destroyed, to_lobby.destroyed], [false, false])
    }
    t.mock.timers.tick(HALF_CLOSED_TOTAL_MS_MAX / STEPS)
    assert.deepStrictEqual([at_edge.destroyed, to_lobby.destroyed], [true, true])
    // After the end of the other side, only a further write shows that the connection was reset.
    await until(() => {
      if (other.writable) other.write('still here')
      return other.closed
    })
  })
}

test(
  'a side that goes on after the other has ended gets to its own end, and nothing ends it later',
  TIMEOUT,
  async (t) => {
    const { client, lobby } = await spliced(t)
    let text = ''
    client.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
    })
    lobby.resume()
    client.end('x')
    await once(lobby, 'end')
    lobby.write('one ')
    t.mock.timers.tick(HALF_CLOSED_TOTAL_MS_MAX - 1)
    lobby.end('two')
    await once(client, 'end')
    t.mock.timers.tick(1)
    assert.strictEqual(text, 'one two')
  },
)

/** Waits by turns of the event loop, because timers are mocked. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}
