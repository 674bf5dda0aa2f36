// A body that is refused: its sender gets the reason, over the edge too, where a connection reset would become a 503.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import { startPlatform } from '../support/platform.ts'

const ROUNDS = 40
/** More than the matchmaker takes, and as much as the edge lets come behind an answer. */
const BODY = Buffer.alloc(1_000_000, 'x')

test('a client that sends too large a body gets the reason over the edge, however much has arrived', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { public_token } = await platform.game()
  const headers = { authorization: `Bearer ${public_token}`, 'content-type': 'application/json' }
  const send = async (method: string, path: string): Promise<unknown> => {
    const answer = await fetch(`${platform.edge_url}${path}`, { method, headers, body: BODY })
    return ((await answer.json()) as { code: string }).code
  }
  for (let round = 0; round < ROUNDS; round++) {
    assert.equal(await send('POST', findLobby.path), 'API_BODY_TOO_LARGE')
    assert.equal(await send('PUT', '/objects/nothing?signed=by-nobody'), 'UPLOAD_FORBIDDEN')
  }
})

test('behind a refusal the rest of a body is thrown away for a moment, and then the connection is cut', async (t) => {
  const platform = await startPlatform(t)
  const { public_token } = await platform.game()
  const { port } = new URL(platform.matchmaker_url)
  const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => socket.destroy())
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes
  })
  const lines = [
    `Authorization: Bearer ${public_token}`,
    'Content-Type: application/json',
    `Content-Length: ${10 ** 12}`,
  ]
  socket.write(`POST ${findLobby.path} HTTP/1.1\r\nHost: localhost\r\n${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'end')
  assert.match(answer, /^HTTP\/1\.1 413 [\s\S]*\r\nconnection: close\r\n[\s\S]*API_BODY_TOO_LARGE/)
  // It is not reset, however much is sent.
  for (let sent = 0; sent < 20; sent++)
    await new Promise<void>((resolve, reject) => socket.write(BODY, (error) => (error ? reject(error) : resolve())))
  const cut = new Promise((resolve) => socket.once('error', resolve))
  const sending = setInterval(() => socket.write('x'), 50)
  t.after(() => clearInterval(sending))
  await cut
})

test('a body that comes a byte at a time is given up after half a minute, at the matchmaker and over the edge', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { public_token } = await platform.game()
  const lines = [
    `POST ${findLobby.path} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${public_token}`,
    'Content-Type: application/json',
    'Content-Length: 1000',
  ]
  const sendSlowly = async (url: string): Promise<string> => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8')
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    const sending = setInterval(() => socket.write(' '), 500)
    let answer = ''
    socket.on('data', (text) => {
      answer += text
    })
    // A client that continues to send may get a reset behind the answer.
    socket.on('error', () => {})
    await once(socket, 'close')
    clearInterval(sending)
    return answer
  }
  const answers = await Promise.all([platform.matchmaker_url, platform.edge_url].map(sendSlowly))
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 408 /)
})
