import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { PeerWatch } from './peer-watch.ts'

/** Longer than every pause of a watch that has just begun. */
const QUIET_MS = 500
const PROGRAM = `
  const server = require('node:http').createServer().listen(0, '127.0.0.1', () => console.log(server.address().port))
`

class World {
  readonly ended: string[] = []
  readonly watch = new PeerWatch(
    () => performance.now(),
    (writer) => this.#onEnded(writer),
  )
  #waiting = Promise.withResolvers<void>()

  constructor(t: TestContext) {
    t.after(() => this.watch.close())
  }

  firstEnd(): Promise<void> {
    return this.#waiting.promise
  }

  #onEnded(writer: string): void {
    this.ended.push(writer)
    this.#waiting.resolve()
  }
}

async function startProcess(t: TestContext): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [port] = await once(child.stdout!, 'data')
  return { child, address: `127.0.0.1:${String(port).trim()}` }
}

async function startServer(t: TestContext): Promise<{ server: Server; address: string }> {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return { server, address: `127.0.0.1:${port}` }
}

test('a process that is killed is reported once, and without a pause of a heartbeat', async (t) => {
  const world = new World(t)
  const { server, address } = await startServer(t)
  const { child, address: other } = await startProcess(t)
  const connected = once(server, 'connection')
  world.watch.follow([
    { writer: 'lives', address },
    { writer: 'killed', address: other },
  ])
  await connected
  await pause()
  child.kill('SIGKILL')
  await world.firstEnd()
  await pause()
  assert.deepEqual(world.ended, ['killed'])
})

test('a process that is suspended, closes connections, or was never there is not reported', async (t) => {
  const world = new World(t)
  const { server, address } = await startServer(t)
  const { child, address: suspended } = await startProcess(t)
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  world.watch.follow([
    { writer: 'closes', address },
    { writer: 'suspended', address: suspended },
    { writer: 'never', address: '127.0.0.1:1' },
  ])
  await pause()
  child.kill('SIGSTOP')
  sockets[0]!.destroy()
  await pause()
  assert.deepEqual(world.ended, [])
  assert.ok(sockets.length > 1, 'the connection is made again')
})

test('a process that is not followed any more is not reported, and its connection is closed', async (t) => {
  const world = new World(t)
  const { server, address } = await startServer(t)
  const connected = once(server, 'connection')
  world.watch.follow([{ writer: 'leaves', address }])
  const [socket] = (await connected) as [Socket]
  socket.resume()
  const closed = once(socket, 'close')
  world.watch.follow([])
  await closed
  server.close()
  await once(server, 'close')
  await pause()
  assert.deepEqual(world.ended, [])
})

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, QUIET_MS))
}
