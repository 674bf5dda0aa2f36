import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { socketInodesOf } from '../../src/node/procfs.ts'
import { readListeners, readListening } from '../../src/runner/sockets.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'

/** Listens, posts its ports, and then blocks until `held` is released. */
const BLOCKED_SERVER = `
  const { createSocket } = require('node:dgram')
  const { createServer } = require('node:net')
  const { parentPort, workerData } = require('node:worker_threads')
  const tcp = createServer((socket) => socket.end()).listen(0, workerData.address, () => {
    const udp = createSocket(workerData.address === '::' ? 'udp6' : 'udp4').bind(0, workerData.address, () => {
      parentPort.postMessage({ tcp: tcp.address().port, udp: udp.address().port })
      Atomics.wait(workerData.held, 0, 0)
    })
  })`

async function blockedServer(t: TestContext, address: string) {
  const held = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(BLOCKED_SERVER, { eval: true, workerData: { address, held } })
  t.after(() => worker.terminate())
  const [ports] = (await once(worker, 'message')) as [{ tcp: number; udp: number }]
  return {
    ...ports,
    unblock() {
      Atomics.store(held, 0, 1)
      Atomics.notify(held, 0)
    },
  }
}

for (const address of ['127.0.0.1', '::']) {
  test(`unaccepted connections and unread datagrams are counted until the server takes them (${address})`, async (t) => {
    const server = await blockedServer(t, address)
    const [unused] = await freePorts(1)
    const backlogOf = async (transport: 'tcp' | 'udp') => {
      const found = await readListeners(transport, [unused!, server[transport]])
      assert.ok(!found.has(unused!), 'a port without a listener')
      return found.get(server[transport])!
    }
    assert.deepEqual(await backlogOf('tcp'), { amount: 0, dropped: 0 })
    assert.deepEqual(await backlogOf('udp'), { amount: 0, dropped: 0 })

    const sockets = Array.from({ length: 3 }, () => connect(server.tcp, '127.0.0.1'))
    const ended = Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
    await until('all of them to wait', async () => (await backlogOf('tcp')).amount === 3)
    const sender = createSocket('udp4')
    t.after(() => sender.close())
    sender.send('one', server.udp, '127.0.0.1')
    await until('a datagram to wait', async () => (await backlogOf('udp')).amount > 0)
    await until('a datagram to be dropped', async () => {
      for (let count = 0; count < 200; count++) sender.send(Buffer.alloc(1_000), server.udp, '127.0.0.1')
      return (await backlogOf('udp')).dropped > 0
    })
    const full = await backlogOf('udp')

    server.unblock()
    await ended
    assert.equal((await backlogOf('tcp')).amount, 0)
    await until('the datagrams to be read', async () => (await backlogOf('udp')).amount === 0)
    assert.ok((await backlogOf('udp')).dropped >= full.dropped, 'the count of dropped datagrams remains')
  })
}

test('the listening sockets of a process are found by its open files, with their addresses', async (t) => {
  const servers = ['127.0.0.1', '0.0.0.0', '::', '::1'].map((host) => createServer().listen(0, host))
  const udp = createSocket('udp4').bind(0, '127.0.0.1')
  t.after(() => {
    for (const server of servers) server.close()
    udp.close()
  })
  await Promise.all([...servers, udp].map((socket) => once(socket, 'listening')))
  const inodes = new Set(socketInodesOf(process.pid, 4_096))
  const tcp = await readListening('tcp', inodes)
  for (const server of servers) {
    const { address, port } = server.address() as AddressInfo
    assert.ok(
      tcp.some((socket) => socket.address === address && socket.port === port),
      `${address}:${port} in ${JSON.stringify(tcp)}`,
    )
  }
  const { port } = udp.address()
  assert.deepEqual(await readListening('udp', inodes), [{ transport: 'udp', address: '127.0.0.1', port }])
  assert.deepEqual(await readListening('tcp', new Set()), [])
})
