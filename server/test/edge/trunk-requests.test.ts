// Requests through a real edge to a role that accepts trunks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RoleTrunks } from '../../src/peers/trunks.ts'
import { edgeProof } from '../../src/tokens/edge-proof.ts'
import { freePorts } from '../support/free-ports.ts'
import { until } from '../support/until.ts'
import { rawClient, startBackend, startTestEdge, type TestEdge } from './platform.ts'

const PROGRAM = join(import.meta.dirname, 'trunk-role-program.ts')
/** More calls than may be at a role at the same time. */
const WAITING = 100

/** A matchmaker that accepts trunks, and an edge in front of it. `over_http`: how many requests came without a trunk. */
async function startTrunkEdge(t: TestContext, handle: RequestListener) {
  let over_http = 0
  const role: { trunks: RoleTrunks | null } = { trunks: null }
  // Before its server, which waits for all connections.
  t.after(() => role.trunks?.close())
  const backend = await startBackend(t, 'matchmaker', (request, response) => {
    over_http++
    handle(request, response)
  })
  Object.assign(backend.server, {
    shouldUpgradeCallback: (request: IncomingMessage) => role.trunks?.isTrunk(request) ?? false,
  })
  backend.server.on('upgrade', (request, socket, head) => role.trunks?.accept(request, socket, head, handle))
  const edge = await startTestEdge(t, { matchmaker_port: backend.port })
  role.trunks = new RoleTrunks(edgeProof(edge.ctx.keys))
  return { edge, overHttp: () => over_http }
}

/** Sends the bytes, and returns all that comes until the edge closes the connection. */
const exchange = (t: TestContext, edge: TestEdge, bytes: string): Promise<string> => {
  const client = rawClient(t, edge.port)
  client.write(bytes)
  return client.end()
}

const VARYING = /^(?:date|x-ray-id|keep-alive): .*\r\n/gim

test('a response over a trunk is the same as one over HTTP', async (t) => {
  const large = 'é'.repeat(100_000)
  const handle: RequestListener = (request, response) => {
    const { url = '' } = request
    if (url.startsWith('/matchmaker/empty')) response.writeHead(204).end()
    else if (url.startsWith('/matchmaker/large')) {
      response.writeHead(200, { 'content-length': Buffer.byteLength(large), vary: 'origin' }).end(large)
    } else if (url.startsWith('/matchmaker/streamed')) {
      response.writeHead(200, { 'set-cookie': ['a=b', 'c=d'] })
      response.write('one')
      response.end('two')
    } else {
      const body = JSON.stringify([request.method, url, request.headers['x-forwarded-for'], request.headers.cookie])
      response.writeHead(url.endsWith('/teapot') ? 418 : 200, { 'content-length': body.length }).end(body)
    }
  }
  const trunk = await startTrunkEdge(t, handle)
  const plain = await startTestEdge(t, { matchmaker_port: (await startBackend(t, 'plain', handle)).port })
  const head = (line: string): string => `${line}\r\nHost: localhost\r\nConnection: close\r\nCookie: a=b\r\n`
  const requests = [
    ...['/small?a=b', '/teapot', '/empty', '/large', '/streamed'].map((path) => `GET /matchmaker${path} HTTP/1.1`),
    ...['HEAD /matchmaker/large HTTP/1.1', 'GET /matchmaker/streamed HTTP/1.0', 'DELETE /matchmaker/a HTTP/1.1'],
  ].map((line) => `${head(line)}\r\n`)
  requests.push(`${head('POST /matchmaker/body HTTP/1.1')}Content-Length: 4\r\n\r\nbody`)
  requests.push(`${head('POST /matchmaker/body HTTP/1.1')}Content-Length: 60000\r\n\r\n${'y'.repeat(60_000)}`)
  for (const request of requests) {
    const [over_trunk, over_http] = await Promise.all([exchange(t, trunk.edge, request), exchange(t, plain, request)])
    // A role frames what it streams, and says so in different places.
    const plainly = (text: string): string => text.replaceAll(VARYING, '').split('\r\n').toSorted().join('\n')
    assert.equal(plainly(over_trunk), plainly(over_http), request.slice(0, 60))
  }
  assert.equal(trunk.overHttp(), 0)
})

test('a client that reads slowly does not delay others, and gets its whole response', async (t) => {
  const large = 'z'.repeat(8 * 1024 * 1024)
  const { edge, overHttp } = await startTrunkEdge(t, (request, response) => {
    const body = request.url === '/matchmaker/large' ? large : 'ok'
    response.writeHead(200, { 'content-length': body.length }).end(body)
  })
  const ask = (path: string): string =>
    `GET /matchmaker${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
  const slow = rawClient(t, edge.port)
  slow.socket.pause()
  slow.write(ask('/large'))
  for (let count = 0; count < 20; count++) assert.match(await exchange(t, edge, ask('/small')), /\r\n\r\nok$/)
  slow.socket.resume()
  assert.ok((await slow.end()).endsWith(`\r\n\r\n${large}`))
  assert.equal(overHttp(), 0)
})

test('requests that wait at a role without trunks do not hold up the next ones', async (t) => {
  const waiting = new Set<IncomingMessage>()
  const { port } = await startBackend(t, 'matchmaker', (request, response) => {
    if (request.url === '/matchmaker/wait') waiting.add(request)
    else response.end('ok')
  })
  const edge = await startTestEdge(t, { matchmaker_port: port })
  const ask = (path: string): string =>
    `GET /matchmaker${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
  for (let count = 0; count < WAITING; count++) {
    // From one address, which may have 256 of them.
    rawClient(t, edge.port).write(ask('/wait'))
  }
  await until('the first ones are at the role', async () => waiting.size > 0)
  assert.match(await exchange(t, edge, ask('/small')), /\r\n\r\nok$/)
})

test('when a role is killed, its waiting requests are refused, and the next role at its port is asked', async (t) => {
  const [port] = (await freePorts(1)) as [number]
  const edge = await startTestEdge(t, { matchmaker_port: port })
  const start = async () => {
    const role = spawn(process.execPath, [PROGRAM, String(port), edgeProof(edge.ctx.keys)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.after(() => role.kill('SIGKILL'))
    await once(role.stdout, 'data')
    return role
  }
  const ask = (path: string): string =>
    `GET /matchmaker${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
  const role = await start()
  const waiting = Array.from({ length: 20 }, () => exchange(t, edge, ask('/wait')))
  await until('they wait', async () => {
    const { text } = await edge.ctx.metrics.text()
    return /edge_role_requests\{role="matchmaker",pool="parked"\} 20$/m.test(text)
  })
  role.kill('SIGKILL')
  for (const response of await Promise.all(waiting)) assert.match(response, /^HTTP\/1\.1 503 /)
  // It is sent again until a role listens.
  const next = exchange(t, edge, ask('/next'))
  await start()
  assert.match(await next, /^HTTP\/1\.1 (?:200|503) /)
  assert.match(await exchange(t, edge, ask('/later')), /\/matchmaker\/later/)
})
