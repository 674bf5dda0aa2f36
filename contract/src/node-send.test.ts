// Requests of Node programs, against a server that behaves in the ways of the network.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { send } from './node-send.ts'

const ASK = { method: 'POST', headers: { authorization: 'Bearer one' }, body: '{"ä":1}', signal: null }

async function serve(t: TestContext, listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

test('a request has its method, headers and body, and the response its status, wait and text', async (t) => {
  const { url } = await serve(t, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => (body += text))
    request.on('end', () => {
      response.writeHead(429, { 'retry-after': '7' })
      const { authorization, 'content-length': length } = request.headers
      response.end(JSON.stringify([request.method, request.url, authorization, length, body]))
    })
  })
  const received = await send(`${url}/one?two=3`, ASK)
  assert.deepEqual(received, {
    status: 429,
    retry_after: '7',
    text: JSON.stringify(['POST', '/one?two=3', 'Bearer one', '8', ASK.body]),
  })
})

test('a request without a response fails with the reason: refused, cut off, redirected, aborted', async (t) => {
  const { url } = await serve(t, ({ url: path }, response) => {
    if (path === '/cut') response.socket?.destroy()
    else if (path === '/half') response.write('half', () => response.socket?.destroy())
    else if (path === '/elsewhere') response.writeHead(302, { location: 'https://example.com/' }).end()
  })
  const causeOf = async (path: string): Promise<unknown> => {
    const error = await send(path, { ...ASK, method: 'GET', body: null }).catch((failure: unknown) => failure)
    assert.ok(error instanceof TypeError)
    const { code, message } = error.cause as NodeJS.ErrnoException
    return code ?? message
  }
  assert.equal(await causeOf('http://127.0.0.1:9/'), 'ECONNREFUSED')
  assert.equal(await causeOf('https://127.0.0.1:9/'), 'ECONNREFUSED')
  assert.equal(await causeOf(`${url}/cut`), 'ECONNRESET')
  assert.equal(await causeOf(`${url}/half`), 'ECONNRESET')
  assert.equal(await causeOf(`${url}/elsewhere`), 'unexpected redirect')
  const ending = new AbortController()
  const waiting = send(`${url}/never`, { ...ASK, signal: ending.signal })
  ending.abort(new Error('Ctrl-C'))
  await assert.rejects(waiting, /^Error: Ctrl-C$/)
})

test('on a connection that the platform has closed meanwhile, what may arrive twice is sent again, and nothing else', async (t) => {
  const counts = { PUT: 0, POST: 0, half: 0 }
  const { url } = await serve(t, (request, response) => {
    const kind = request.url === '/half' ? 'half' : (request.method as 'PUT' | 'POST')
    counts[kind]++
    // The second request on a connection meets its end.
    if (counts[kind] !== 2) response.end(String(counts[kind]))
    else if (kind === 'half') response.write('half', () => request.socket.resetAndDestroy())
    else request.socket.resetAndDestroy()
  })
  const put = { ...ASK, method: 'PUT' }
  assert.equal((await send(url, put)).text, '1')
  assert.equal((await send(url, put)).text, '3')
  assert.equal((await send(url, ASK)).text, '1')
  await assert.rejects(send(url, ASK), TypeError)
  assert.equal(counts.POST, 2)
  // A response has begun: the platform has read the request.
  assert.equal((await send(`${url}/half`, put)).text, '1')
  await assert.rejects(send(`${url}/half`, put), TypeError)
  assert.equal(counts.half, 2)
})
