import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { checkNodeInternals } from './node-internals.ts'

async function check() {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  return { internals: await checkNodeInternals(log), lines }
}

async function acceptOne(t: TestContext): Promise<{ client: Socket; accepted: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [Socket]
  t.after(() => {
    client.destroy()
    server.close()
  })
  return { client, accepted }
}

test('this version of Node passes the self-test, and bytes arrive over a moved handle', async (t) => {
  const { internals, lines } = await check()
  assert.deepEqual(lines, [])
  const { client, accepted } = await acceptOne(t)
  const moved = internals.acceptSharingReads(accepted)
  t.after(() => moved.destroy())
  assert.notEqual(moved, accepted)
  client.write('hello')
  moved.resume()
  assert.equal(String((await once(moved, 'data'))[0]), 'hello')
})

test('where the self-test fails, the log says so and sockets are left unchanged', async (t) => {
  const { write: writeAsBefore } = Socket.prototype
  const write = t.mock.method(Socket.prototype, 'write', function (this: Socket, ...args: unknown[]) {
    // The outputs of this process are sockets too, and carry the results of the tests.
    if (this === process.stdout || this === process.stderr) return Reflect.apply(writeAsBefore, this, args)
    this.destroy()
    const done = args.at(-1)
    if (typeof done === 'function') done()
    return true
  })
  const { internals, lines } = await check()
  write.mock.restore()
  assert.equal(lines.length, 2)
  const { accepted } = await acceptOne(t)
  t.after(() => accepted.destroy())
  assert.equal(internals.acceptSharingReads(accepted), accepted)
  const { _write } = accepted
  internals.tolerateWriteErrors(accepted, () => true)
  assert.equal(accepted._write, _write)
})
