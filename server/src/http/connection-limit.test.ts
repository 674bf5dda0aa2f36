import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { limitConnections } from './connection-limit.ts'

test('a newcomer takes the place of the connection whose last request is the longest ago', async (t) => {
  const server = createServer((_, response) => response.end('ok'))
  limitConnections(server, 2)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  const open = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1')
    socket.on('error', () => {})
    const [accepted] = await Promise.all([once(server, 'connection'), once(socket, 'connect')])
    assert.ok(accepted)
    return socket
  }
  const ask = async (socket: Socket): Promise<void> => {
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.match((await once(socket, 'data'))[0], /^HTTP\/1.1 200/)
  }
  const [first, second] = [await open(), await open()]
  await ask(second)
  await ask(first)
  const closed = once(second, 'close')
  const third = await open()
  await closed
  await ask(first)
  await ask(third)
})
