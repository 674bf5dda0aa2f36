// The edge supports neither HTTP/2 nor HTTP/3: attacks with their frames have no effect, because no code reads frames.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { rawClient, startBackend, startTestEdge } from './platform.ts'

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const STREAMS = 10_000
const [HEADERS, RESET, SETTINGS, CONTINUATION] = [1, 3, 4, 9]
const END_HEADERS = 4

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const settings = frame(SETTINGS, 0, 0)
/** :method GET, :scheme http, :path /, from HPACK's static table. */
const request = Buffer.from([0x82, 0x86, 0x84])

test('HTTP/2 with prior knowledge, rapid resets or endless headers ends the connection and reaches no backend', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const reset = Buffer.alloc(4)
  const floods = {
    'a preface': [],
    'rapid resets': Array.from({ length: STREAMS }, (_, index) => [
      frame(HEADERS, END_HEADERS, 2 * index + 1, request),
      frame(RESET, 0, 2 * index + 1, reset),
    ]).flat(),
    'headers that go on and on': [
      frame(HEADERS, 0, 1, request),
      ...Array.from({ length: STREAMS }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(64))),
    ],
  }
  for (const [name, frames] of Object.entries(floods)) {
    const client = rawClient(t, edge.port)
    client.write(PREFACE)
    client.write(Buffer.concat([settings, ...frames]))
    const response = await client.end()
    assert.ok(response === '' || /^HTTP\/1\.1 (400|505) /.test(response), `${name}: ${response.slice(0, 100)}`)
  }
  const player = rawClient(t, edge.port)
  player.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await player.read((bytes) => bytes.endsWith('api'))
  assert.equal(api.seen.length, 1)
})

test('a request for h2c gets one HTTP/1.1 response, and the bytes after it are not read as frames', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write(
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  )
  const response = await client.read((bytes) => bytes.endsWith('api'))
  assert.match(response, /^HTTP\/1\.1 200 /)
  assert.equal(api.seen.length, 1)
  const { headers } = api.seen[0]!
  assert.deepEqual(
    [headers.upgrade, headers['http2-settings']],
    [undefined, undefined],
    'no backend gets a request either',
  )
  client.write(PREFACE)
  client.write(settings)
  const all = await client.end()
  assert.equal(all.split('HTTP/1.1 200').length, 2)
  assert.equal(api.seen.length, 1)
})

test('over TLS the edge negotiates h2 or HTTP/1.1, and neither offers HTTP/3 nor listens for it', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const dial = async (ALPNProtocols: string[]) => {
    const socket = connect({
      port: edge.https_port,
      host: '127.0.0.1',
      servername: 'localhost',
      ALPNProtocols,
      rejectUnauthorized: false,
    })
    t.after(() => socket.destroy())
    await once(socket, 'secureConnect')
    return socket
  }
  assert.equal((await dial(['h2', 'http/1.1'])).alpnProtocol, 'h2')
  const browser = await dial(['http/1.1'])
  let response = ''
  browser.setEncoding('latin1').on('data', (chunk) => {
    response += chunk
  })
  browser.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await once(browser, 'close')
  assert.match(response, /^HTTP\/1\.1 200 [\s\S]*api$/)
  assert.doesNotMatch(response, /^alt-svc:/im)
  // A client that supports neither gets no common protocol.
  const only = await dial(['h3']).then(
    ({ alpnProtocol }) => alpnProtocol,
    () => false,
  )
  assert.equal(only, false)
  const taken = createSocket('udp4')
  taken.bind({ port: edge.https_port, address: '127.0.0.1', exclusive: true })
  await once(taken, 'listening')
  taken.close()
})
