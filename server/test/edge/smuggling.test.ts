// Request smuggling: bytes that one parser reads as one request and another parser as two. Each case is written raw to the
// edge. It is refused and the connection closed, or the backend receives exactly the requests that the edge responded to.
import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { rawClient, startTestEdge } from './platform.ts'
import { startStrictBackend } from './strict-backend.ts'

const HOST = 'Host: localhost\r\n'
const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** `refused`: the response is 400. Otherwise the number of requests that the backend must receive. */
const CASES: Record<string, { bytes: string; expected: 'refused' | number }> = {
  'CL.TE': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`,
    expected: 'refused',
  },
  'TE.CL': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'TE.TE': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'TE twice': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  xchunked: {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'chunked, identity': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'gzip, chunked': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'TE with a vertical tab': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'TE with a space before the colon': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'TE in HTTP/1.0': {
    bytes: `POST /a HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'two equal lengths': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`,
    expected: 'refused',
  },
  'two lengths': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'a list of lengths': { bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 2, 2\r\n\r\nhi`, expected: 'refused' },
  'a signed length': { bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: +2\r\n\r\nhi`, expected: 'refused' },
  'a negative length': { bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`, expected: 'refused' },
  'a hexadecimal length': { bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 0x2\r\n\r\nhi`, expected: 'refused' },
  'a length beyond 64 bits': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 18446744073709551618\r\n\r\nhi`,
    expected: 'refused',
  },
  'an empty length': { bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: \r\n\r\n`, expected: 'refused' },
  'a length with a space before the colon': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length : 2\r\n\r\nhi`,
    expected: 'refused',
  },
  'a folded line': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}X: a\r\n Content-Length: 44\r\n\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'a header without a colon': { bytes: `GET /a HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`, expected: 'refused' },
  'a bare CR in a value': { bytes: `GET /a HTTP/1.1\r\n${HOST}X: a\rContent-Length: 44\r\n\r\n`, expected: 'refused' },
  'a bare LF after a line': { bytes: `GET /a HTTP/1.1\nHost: localhost\n\n`, expected: 'refused' },
  'a NUL in a value': { bytes: `GET /a HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`, expected: 'refused' },
  'a control character in a value': { bytes: `GET /a HTTP/1.1\r\n${HOST}X: a\x01b\r\n\r\n`, expected: 'refused' },
  'a NUL in a name': { bytes: `GET /a HTTP/1.1\r\n${HOST}X\0: b\r\n\r\n`, expected: 'refused' },
  'a space in the target': { bytes: `GET /a b HTTP/1.1\r\n${HOST}\r\n`, expected: 'refused' },
  'a line in the target': { bytes: `GET /a\r\nX: y HTTP/1.1\r\n${HOST}\r\n`, expected: 'refused' },
  'bytes beyond ASCII in the target': { bytes: `GET /\xe9 HTTP/1.1\r\n${HOST}\r\n`, expected: 'refused' },
  'HTTP/0.9': { bytes: 'GET /\r\n\r\n', expected: 'refused' },
  'HTTP/2 without an upgrade': { bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', expected: 'refused' },
  'an unknown method': { bytes: `G3T /a HTTP/1.1\r\n${HOST}\r\n`, expected: 'refused' },
  'a chunk size that overflows': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nhi\r\n0\r\n\r\n${HIDDEN}`,
    expected: 'refused',
  },
  'a chunk size that is none': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n-1\r\nhi\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'a chunk longer than its size': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nhiho\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'a chunk ended by a bare LF': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n${HIDDEN}`,
    expected: 'refused',
  },
  'a chunk extension with a bare LF': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2;\nx\r\nhi\r\n0\r\n\r\n`,
    expected: 'refused',
  },
  'a chunk extension': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0\r\n\r\n`,
    expected: 1,
  },
  trailers: {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nX: y\r\n\r\n`,
    expected: 1,
  },
  'a length in the trailers': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nContent-Length: 44\r\n\r\n`,
    expected: 'refused',
  },
  'a version below 1.0': { bytes: `GET /a HTTP/0.9\r\n${HOST}\r\n`, expected: 'refused' },
  'a version above 1.1': { bytes: `GET /a HTTP/1.2\r\n${HOST}\r\n`, expected: 'refused' },
  'a body with GET': {
    bytes: `GET /a HTTP/1.1\r\n${HOST}Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    expected: 1,
  },
  'a chunked body with GET': {
    bytes: `GET /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    expected: 1,
  },
  'an escaped line end in the target': { bytes: `GET /a%0d%0aX:y HTTP/1.1\r\n${HOST}\r\n`, expected: 1 },
  'an upgrade to h2c': {
    bytes: `GET /a HTTP/1.1\r\n${HOST}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`,
    expected: 1,
  },
  'Connection names the length': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Connection: content-length, host\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    expected: 1,
  },
  'two requests, sent at once': {
    bytes: `POST /a HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nhi${HIDDEN}`,
    expected: 2,
  },
}

test('no bytes make the backend receive a request that the edge did not read', async (t) => {
  const backend = await startStrictBackend(t)
  const edge = await startTestEdge(t, { api_port: backend.port })
  for (const [name, { bytes, expected }] of Object.entries(CASES)) {
    await t.test(name, async (t) => {
      backend.requests.length = 0
      const client = rawClient(t, edge.port)
      client.write(Buffer.from(bytes, 'latin1'))
      if (expected === 'refused') {
        const response = await client.end()
        assert.match(response, /^HTTP\/1\.1 400 /)
        assert.equal(response.split('HTTP/1.1 ').length, 2, response)
        assert.equal(backend.requests.length, 0)
      } else {
        await client.read(
          (response) => response.split('HTTP/1.1 200').length === expected + 1 && response.endsWith('ok'),
        )
        assert.equal(backend.requests.length, expected)
        for (const request of backend.requests) {
          assert.equal(request.match(/^x-forwarded-for:/gim)?.length, 1)
          assert.match(request, /^x-forwarded-for: 127\.0\.0\.1\r$/im)
          assert.doesNotMatch(request, /^upgrade:/im)
        }
      }
      // Nothing is left on the connection to the backend, which another client's request will use.
      backend.requests.length = 0
      const next = rawClient(t, edge.port)
      next.write(`GET /next HTTP/1.1\r\n${HOST}\r\n`)
      await next.read((response) => response.endsWith('ok'))
      assert.deepEqual(
        backend.requests.map((request) => request.split(' ', 2)[1]),
        ['/next'],
      )
    })
  }
})

/** Real servers: where they and the edge read differently, one of them receives another number of requests. */
const SERVERS: Record<string, [string, string[]]> = {
  Node: [
    process.execPath,
    [
      '-e',
      `const server = require('node:http').createServer((req, res) => {
        req.resume().on('end', () => {
          console.log(req.url)
          res.end('ok')
        })
      })
      server.listen(0, '127.0.0.1', () => console.log(server.address().port))`,
    ],
  ],
  Python: [
    'python3',
    [
      '-c',
      `
import http.server
class Server(http.server.ThreadingHTTPServer):
    # The edge closes connections at once when it refuses a request; that is no error here.
    def handle_error(self, *words):
        pass
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.headers.get('transfer-encoding') == 'chunked':
            size = -1
            while size != 0:
                size = int(self.rfile.readline(), 16)
                self.rfile.read(size + 2)
        else:
            self.rfile.read(int(self.headers.get('content-length', 0)))
        print(self.path, flush=True)
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    do_POST = do_GET
    def log_message(self, *words):
        pass
server = Server(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
`,
    ],
  ],
}

for (const [language, [program, words]] of Object.entries(SERVERS)) {
  test(`a server in ${language} receives as many requests as the edge responds to`, async (t) => {
    const missing = program === 'python3' ? lacking(program) : null
    if (missing !== null) return t.skip(missing)
    const server = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => server.kill('SIGKILL'))
    const lines = createInterface(server.stdout)
    const [port] = (await once(lines, 'line')) as [string]
    const paths: string[] = []
    lines.on('line', (path) => paths.push(path))
    const edge = await startTestEdge(t, { api_port: Number(port) })
    for (const [name, { bytes, expected }] of Object.entries(CASES)) {
      paths.length = 0
      const client = rawClient(t, edge.port)
      client.write(Buffer.from(bytes, 'latin1'))
      const count = expected === 'refused' ? 0 : expected
      if (count === 0) assert.match(await client.end(), /^HTTP\/1\.1 400 /, name)
      else await client.read((response) => response.split('HTTP/1.1 200').length === count + 1)
      const next = rawClient(t, edge.port)
      next.write(`GET /next HTTP/1.1\r\n${HOST}\r\n`)
      await next.read((response) => response.includes('HTTP/1.1 200'))
      await until('it has reported the last request', () => paths.at(-1) === '/next')
      assert.equal(paths.length, count + 1, `${name}: ${paths.join(' ')}`)
    }
  })
}

test('a backend that responds twice, or not with HTTP, does not affect other clients', async (t) => {
  const responses: Record<string, string> = {
    '/twice': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen',
    '/garbage': 'SSH-2.0-OpenSSH_9.2\r\n',
    '/lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 8\r\n\r\nok',
    '/both': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    '/nul': 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok',
    '/status': 'HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok',
    '/switch': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    '/large': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
  }
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      const path = chunk.toString().split(' ', 2)[1] ?? ''
      socket.write(responses[path] ?? 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: (server.address() as AddressInfo).port })
  const ask = async (path: string) => {
    const client = rawClient(t, edge.port)
    client.write(`GET ${path} HTTP/1.1\r\nHost: ${lobby_id}-default.lobby.local.localhost\r\nConnection: close\r\n\r\n`)
    return client.end()
  }
  for (const path of Object.keys(responses)) {
    const response = await ask(path)
    assert.match(
      response,
      path === '/twice' ? /^HTTP\/1\.1 200 [\s\S]*ok$/ : /^HTTP\/1\.1 502 [\s\S]*"LOBBY_NOT_REACHABLE"/,
      path,
    )
    assert.match(await ask('/fine'), /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nok$/)
  }
})
