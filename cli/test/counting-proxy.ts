// A TCP proxy in front of a platform. It counts the bytes that its clients send.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export type CountingProxy = {
  port: number
  /** Where connections go from now on. */
  target: (port: number) => void
  sent_bytes: () => number
}

export async function startCountingProxy(t: TestContext): Promise<CountingProxy> {
  let target_port = 0
  let sent_bytes = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target_port, '127.0.0.1')
    client.on('data', (chunk) => {
      sent_bytes += chunk.length
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.pipe(other)
      // The other side gets the end of the connection.
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    target: (port) => {
      target_port = port
    },
    sent_bytes: () => sent_bytes,
  }
}
