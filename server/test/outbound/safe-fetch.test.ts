import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createDns } from '../../src/outbound/dns.ts'
import { isPublicAddress, parseNetworks } from '../../src/outbound/public-address.ts'
import {
  FetchFailure,
  type FetchFailureReason,
  type FetchRequest,
  type FetchRules,
  parseTarget,
  safeFetch,
} from '../../src/outbound/safe-fetch.ts'
import { type NameServer, startNameServer } from './name-server.ts'

const LOOPBACK = ['127.0.0.1/32']

function rulesOf(server: NameServer | null, private_networks = LOOPBACK): FetchRules {
  return {
    schemes: ['http', 'https'],
    names: createDns(server === null ? [] : [server.address]),
    private_networks: parseNetworks(private_networks),
    own_ports: [6432],
  }
}

const wish = (url: string, more: Partial<FetchRequest> = {}): FetchRequest => ({
  url,
  timeout_ms: 3_000,
  body_bytes_max: 1_024,
  ...more,
})

async function failed(reason: FetchFailureReason, call: Promise<unknown>): Promise<FetchFailure> {
  try {
    await call
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    assert.equal(error.reason, reason, error.message)
    assert.doesNotMatch(error.message, /[\r\n]/)
    return error
  }
  assert.fail(`It should have failed: ${reason}`)
}

async function startHttp(t: TestContext, handler: RequestListener): Promise<number> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** A server below HTTP; answers its port and how many connections have come. */
async function startTcp(t: TestContext, onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createTcpServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    onSocket(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets, connections: () => connections }
}

test('no spelling of an address that is not public is public', () => {
  const refused = [
    ...['127.0.0.1', '::1', '::ffff:127.0.0.1', '::127.0.0.1', '0.0.0.0', '::', '169.254.169.254', '100.100.100.200'],
    ...['fd00::1', 'fc00::1', 'fe80::1', 'fe80::1%eth0', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1'],
    ...['198.18.0.1', '224.0.0.1', '240.0.0.1', '255.255.255.255', '64:ff9b::7f00:1', '2002:7f00:1::', '2001::1'],
    ...['::ffff:0:127.0.0.1', 'fec0::1', 'ff02::1', '2001:db8::1', '192.0.2.1', '127.1', '2130706433', 'localhost', ''],
  ]
  for (const address of refused) assert.equal(isPublicAddress(address), false, address)
  for (const address of ['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8', '193.0.0.1']) {
    assert.equal(isPublicAddress(address), true, address)
  }
})

test('addresses that are not public are refused in every spelling, before a connection', async (t) => {
  const listener = await startTcp(t, (socket) => socket.destroy())
  const { port } = listener
  const hosts = [
    ...['127.1', '2130706433', '0x7f.1', '0177.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', 'localhost'],
    ...['localhost.', 'LOCALHOST', 'a.localhost', '①②⑦.0.0.1', '0.0.0.0', '127.0.0.1.', '169.254.169.254'],
  ]
  const names = await startNameServer(t)
  names.zones.set('127.0.0.1.nip.io', { A: ['127.0.0.1'] })
  const rules = rulesOf(names, [])
  for (const host of [...hosts, '127.0.0.1.nip.io']) {
    await failed('address_not_public', safeFetch(wish(`http://${host}:${port}/`), rules))
  }
  assert.equal(listener.connections(), 0)
})

test('what cannot be a target is refused when it is set', () => {
  const rules = { ...rulesOf(null, []), schemes: ['https'] as const }
  const refused = [
    ...['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'nonsense', 'https://'],
    ...[
      'https://user@example.com/',
      'https://user:pw@example.com/',
      'https://example.com/#part',
      'https://example.com/#',
    ],
    ...[
      'https://example.com:22/',
      'https://example.com:25/',
      'https://example.com:5432/',
      'https://example.com:6432/',
      'https://example.com:6379/',
      'https://example.com:0/',
    ],
    ...['https://intranet/', `https://example.com/${'a'.repeat(8_192)}`],
  ]
  for (const url of refused) assert.throws(() => parseTarget(url, rules), { name: 'FetchFailure', reason: 'url' }, url)
  for (const url of ['https://example.com/x?y=1', 'https://example.com:8443/', 'https://example.com:80/'])
    parseTarget(url, rules)
})

test('a name is resolved once, and only to addresses that are all public', async (t) => {
  const listener = await startTcp(t, (socket) => socket.destroy())
  const names = await startNameServer(t)
  const rules = rulesOf(names, [])
  const url = `http://game.example:${listener.port}/`
  const cases = {
    'public and private': { A: ['93.184.215.14', '127.0.0.1'] },
    'private IPv6 beside public IPv4': { A: ['93.184.215.14'], AAAA: ['::1'] },
    'mapped IPv6': { AAAA: ['::ffff:127.0.0.1'] },
    'a chain to private': { CNAME: 'inside.example', A: ['10.0.0.1'] },
  }
  for (const [what, zone] of Object.entries(cases)) {
    names.zones.set('game.example', zone)
    await t.test(what, async () => void (await failed('address_not_public', safeFetch(wish(url), rules))))
  }

  await t.test('rebinding: the second answer is never asked for', async (t) => {
    const port = await startHttp(t, (_req, res) => res.end('first'))
    // The allowed network stands for the public one; what comes second would not be allowed.
    names.zones.set('twice.example', (asked) => ({ A: [asked === 1 ? '127.0.0.1' : '127.0.0.2'] }))
    const { body } = await safeFetch(wish(`http://twice.example:${port}/`), rulesOf(names))
    assert.equal(body.toString(), 'first')
    assert.equal(names.questions.filter((question) => question === 'A twice.example').length, 1)
    await failed('address_not_public', safeFetch(wish(`http://twice.example:${port}/`), rulesOf(names)))
  })

  await t.test('errors of name servers are distinguished', async () => {
    names.zones.set('broken.example', 'SERVFAIL')
    assert.match(
      (await failed('dns', safeFetch(wish(`http://broken.example:${listener.port}/`), rules))).message,
      /SERVFAIL/,
    )
    assert.match(
      (await failed('dns', safeFetch(wish(`http://none.example:${listener.port}/`), rules))).message,
      /NXDOMAIN/,
    )
    names.zones.set('silent.example', 'SILENCE')
    const silent = safeFetch(wish(`http://silent.example:${listener.port}/`, { timeout_ms: 300 }), rules)
    await failed('timeout', silent)
  })

  await t.test('further sections of an answer, and rubbish after it, lead nowhere', async () => {
    names.zones.set('clean.example', { A: [] })
    names.additionals = [{ type: 'A', name: 'clean.example', ttl: 60, data: '127.0.0.1' }]
    await failed('dns', safeFetch(wish(`http://clean.example:${listener.port}/`), rulesOf(names)))
    names.is_flooding = true
    await failed('dns', safeFetch(wish(`http://clean.example:${listener.port}/`), rulesOf(names)))
    names.is_flooding = false
    names.additionals = []
  })
  assert.equal(listener.connections(), 0)
})

test('redirects are not followed, and every status is returned unchanged', async (t) => {
  const port = await startHttp(t, (req, res) => {
    const status = Number(new URL(req.url!, 'http://x').pathname.slice(1))
    res.writeHead(status, status >= 300 && status < 400 ? { location: 'http://127.0.0.1:1/' } : {}).end()
  })
  const rules = rulesOf(null)
  for (const status of [200, 204, 206, 299, 300, 301, 302, 304, 307, 308, 404, 500, 600, 999]) {
    const answer = await safeFetch(wish(`http://127.0.0.1:${port}/${status}`), rules)
    assert.equal(answer.status, status)
  }
})

test('the body is read to its limit, never unpacked, and the host and method are those that were asked', async (t) => {
  const port = await startHttp(t, (req, res) => {
    if (req.url === '/large') res.end(Buffer.alloc(4_096))
    else if (req.url === '/gzip') res.writeHead(200, { 'content-encoding': 'gzip' }).end('packed')
    else res.end(`${req.method} ${req.headers.host} ${req.headers['accept-encoding']}`)
  })
  const names = await startNameServer(t)
  names.zones.set('game.example', { A: ['127.0.0.1'] })
  const rules = rulesOf(names)
  const base = `http://game.example:${port}`
  await failed('too_large', safeFetch(wish(`${base}/large`), rules))
  assert.equal((await safeFetch(wish(`${base}/large`, { body_bytes_max: 0 }), rules)).status, 200)
  assert.equal((await safeFetch(wish(`${base}/gzip`), rules)).body.toString(), 'packed')
  const said = (
    await safeFetch(wish(`${base}/`, { method: 'POST', body: 'x', headers: { host: 'other.example' } }), rules)
  ).body
  assert.equal(said.toString(), `POST game.example:${port} identity`)
})

test('a server that is slow, endless or not HTTP is given up at the deadline or before', async (t) => {
  const rules = rulesOf(null)
  const HEAD = 'HTTP/1.1 200 OK\r\n'
  const cases: Record<string, { say: string; drip?: string; reason: FetchFailureReason }> = {
    'accepts and never answers': { say: '', reason: 'timeout' },
    'drips its header': { say: HEAD, drip: 'x', reason: 'timeout' },
    'stalls after its header': { say: `${HEAD}content-length: 10\r\n\r\n`, reason: 'timeout' },
    'drips its body': { say: `${HEAD}content-length: 900\r\n\r\n`, drip: 'x', reason: 'timeout' },
    'endless 100 Continue': { say: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50), reason: 'protocol' },
    'endless header': { say: `${HEAD}${'x-a: b\r\n'.repeat(5_000)}`, reason: 'protocol' },
    'invalid chunks': { say: `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`, reason: 'protocol' },
    'a negative length': { say: `${HEAD}content-length: -1\r\n\r\n`, reason: 'protocol' },
    'a status of four digits': { say: 'HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n', reason: 'protocol' },
    text: { say: 'hello\r\n', reason: 'protocol' },
    'another protocol': {
      say: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      reason: 'protocol',
    },
  }
  for (const [what, { say, drip, reason }] of Object.entries(cases)) {
    await t.test(what, async (t) => {
      const { port, sockets } = await startTcp(t, (socket) => {
        socket.resume()
        socket.write(say)
        if (drip === undefined) return
        const timer = setInterval(() => socket.write(drip), 20)
        socket.once('close', () => clearInterval(timer))
      })
      await failed(reason, safeFetch(wish(`http://127.0.0.1:${port}/`, { timeout_ms: 300 }), rules))
      for (const socket of sockets) await new Promise((resolve) => socket.once('close', resolve))
    })
  }
})

test('of an endless answer nothing is read once its status is known', async (t) => {
  const MORE = Buffer.alloc(64 * 1024, 'x')
  for (const head of [
    'content-length: 10000000000\r\n\r\n',
    'transfer-encoding: chunked\r\n\r\n10000\r\n',
    'content-encoding: gzip\r\ncontent-length: 10000000000\r\n\r\n',
    '\r\n',
  ]) {
    const { promise: closed, resolve } = Promise.withResolvers<number>()
    const { port } = await startTcp(t, (socket) => {
      socket.resume()
      socket.write(`HTTP/1.1 200 OK\r\n${head}`)
      const pour = (): void => {
        while (!socket.destroyed && socket.write(MORE));
      }
      socket.on('drain', pour)
      socket.once('close', () => resolve(socket.bytesWritten))
      pour()
    })
    assert.equal((await safeFetch(wish(`http://127.0.0.1:${port}/`, { body_bytes_max: 0 }), rulesOf(null))).status, 200)
    // The buffers of the kernel for a connection that is not read.
    const sent_bytes = await closed
    assert.ok(sent_bytes < 16 * 1024 * 1024, `${sent_bytes} bytes`)
  }
})

test('a port without a listener is a failed connection', async (t) => {
  const { port } = await startTcp(t, () => {})
  const free = port === 65_535 ? 2_000 : port
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const closed_port = (server.address() as AddressInfo).port
  server.close()
  await once(server, 'close')
  assert.notEqual(free, closed_port)
  await failed('connection', safeFetch(wish(`http://127.0.0.1:${closed_port}/`), rulesOf(null)))
})
