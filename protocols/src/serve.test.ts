import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { sendJson } from './http-body.ts'
import type { ProtocolEndpoint } from './protocol.ts'
import { serveForTest, until } from './test-server.ts'

/** Responds with the version of HTTP, and refuses upgrades. */
const VERSIONS: ProtocolEndpoint = {
  request: (request, response) => sendJson(response, 200, { version: request.httpVersion }),
  close: () => undefined,
}

/** Sends the parts one after the other. Returns the response as text, which ends when it has `end`. */
async function exchange(t: TestContext, parts: readonly string[], end: string): Promise<string> {
  const socket = connect(await serveForTest(t, VERSIONS), '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  let is_closed = false
  socket.on('data', (part) => {
    text += part
  })
  socket.on('error', () => undefined)
  socket.once('close', () => {
    is_closed = true
  })
  for (const part of parts) {
    socket.write(part)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until('the response', () => text.includes(end) || is_closed)
  return text
}

test('a request that asks for h2c is served over HTTP/1.1', async (t) => {
  const upgrade = 'connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n'
  const text = await exchange(t, [`GET / HTTP/1.1\r\nhost: x\r\n${upgrade}\r\n`], '}')
  assert.match(text, /^HTTP\/1\.1 200 /)
  assert.match(text, /"version":"1\.1"/)
})

test('an idle connection stays open for minutes', async (t) => {
  const text = await exchange(t, ['GET / HTTP/1.1\r\nhost: x\r\n\r\n'], '}')
  const seconds = Number(/keep-alive: timeout=(\d+)/i.exec(text)?.[1])
  assert.ok(seconds >= 300, text)
})

test('a method that begins like the preface of HTTP/2 is HTTP/1.1, also byte by byte', async (t) => {
  const text = await exchange(t, [...'PRIVATE / HTTP/1.1\r\nhost: x\r\n\r\n'], '\r\n\r\n')
  assert.match(text, /^HTTP\/1\.1 400 |^$/)
  const patch = await exchange(t, [...'PATCH / HTTP/1.1\r\nhost: x\r\n\r\n'], '}')
  assert.match(patch, /"version":"1\.1"/)
})

test('an upgrade is closed where the endpoint has none', async (t) => {
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n'
  assert.equal(await exchange(t, [`GET / HTTP/1.1\r\nhost: x\r\n${upgrade}\r\n`], '\r\n\r\n'), '')
})

test('HTTP/2 without TLS comes to the same port', async (t) => {
  const session = connectHttp2(`http://127.0.0.1:${await serveForTest(t, VERSIONS)}`)
  t.after(() => session.destroy())
  const stream = session.request({ ':path': '/' })
  let text = ''
  stream.on('data', (part) => {
    text += part
  })
  await until('the response', () => text.includes('}'))
  assert.deepEqual(JSON.parse(text), { version: '2.0' })
})
