// The target of a request is looked up, never taken from the request: an upgrade in any form leads to an existing lobby or
// is refused. An internal server listens on this machine, and no request reaches it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { rawClient, startBackend, startTestEdge } from './platform.ts'

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

async function startInternal(t: TestContext) {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

test('no upgrade leads to an address that the request names', async (t) => {
  const internal = await startInternal(t)
  const { at } = internal
  const port = at.split(':')[1]
  const api = await startBackend(t, 'api')
  const lobby = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t, { api_port: api.port, matchmaker_port: api.port })
  const lobby_host = `${await edge.lobby({ game: lobby.port })}-game.lobby.local.localhost`
  const heads = [
    `GET http://${at}/ HTTP/1.1\r\nHost: ${at}\r\n`,
    `GET http://${at}/ HTTP/1.1\r\nHost: ${lobby_host}\r\n`,
    `GET http://${at}/ HTTP/1.1\r\nHost: localhost\r\n`,
    `GET ws://${at}/ HTTP/1.1\r\nHost: ${at}\r\n`,
    `GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n`,
    `GET //${at}/ HTTP/1.1\r\nHost: ${lobby_host}\r\n`,
    `GET /lobbies/${at}/game HTTP/1.1\r\nHost: localhost\r\n`,
    `GET /lobbies/..%2f${at}/game HTTP/1.1\r\nHost: localhost\r\n`,
    `GET / HTTP/1.1\r\nHost: ${at}\r\n`,
    `GET / HTTP/1.1\r\nHost: ${lobby_host}@${at}\r\n`,
    `GET / HTTP/1.1\r\nHost: ${lobby_host}:${port}\r\n`,
    `GET / HTTP/1.1\r\nHost: localhost:${port}\r\n`,
    `GET / HTTP/1.1\r\nHost: [::ffff:7f00:1]:${port}\r\n`,
    `GET / HTTP/1.1\r\nHost: 0x7f.1:${port}\r\n`,
    `GET / HTTP/1.1\r\nHost: ${lobby_host}\r\nX-Forwarded-Host: ${at}\r\nForwarded: host="${at}"\r\n`,
    `GET / HTTP/1.1\r\nHost: ${lobby_host}\r\nX-Forwarded-Server: ${at}\r\nX-Original-URL: http://${at}/\r\n`,
    `CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n`,
  ]
  for (const head of heads) {
    for (const rest of [UPGRADE, '']) {
      const client = rawClient(t, edge.port)
      client.write(`${head}${rest}Origin: http://localhost\r\n\r\n`)
      const response = await client.read((bytes) => /\r\n\r\n[\s\S]+$/.test(bytes)).catch(() => '')
      assert.doesNotMatch(response, /secret/, head)
      client.socket.destroy()
    }
  }
  assert.equal(internal.connections(), 0, 'the internal server got no connection')
})
