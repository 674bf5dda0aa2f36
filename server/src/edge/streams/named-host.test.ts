import assert from 'node:assert'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { NAMED_HOST_BYTES_MAX } from '../limits.ts'
import { createHosts } from '../routes/hosts.ts'
import { createHostFilter, namedHost } from './named-host.ts'

const domains = { main: 'muster.example', cdn: 'sites.example.net', job: 'play.example.org' }
const meaningOf = createHosts({ edge_public_host: null, mode: 'production', domains, regions: [{ name: 'local' }] })
const OWN = '0197a3b4-0000-7000-8000-0123456789ab-game.lobby.local.play.example.org'
const request = (host: string) => Buffer.from(`GET /a?b HTTP/1.1\r\nHost: ${host}\r\nCookie: a=secret\r\n\r\n`)

const listeners = new Set<ReturnType<typeof createServer>>()
after(() => {
  for (const server of listeners) server.close()
})

/** Returns the first message of a real client that connects to that name. */
async function hello(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  listeners.add(server)
  await once(server, 'listening')
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername })
  client.on('error', () => {})
  const [accepted] = await once(server, 'connection')
  const [bytes] = await once(accepted, 'data')
  client.destroy()
  accepted.destroy()
  return bytes as Buffer
}

/** Splits the message into records of this many bytes. */
function inRecords(message: Buffer, size: number): Buffer {
  const body = message.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    records.push(Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 0xff]), part)
  }
  return Buffer.concat(records)
}

/** Returns the bytes that a filter lets pass when they arrive in pieces. */
function passed(bytes: Buffer, size: number): string | 'refused' {
  const filter = createHostFilter(meaningOf)
  for (let at = 0; at < bytes.length; at += size) {
    const verdict = filter.take(bytes.subarray(at, at + size))
    if (verdict === 'refused') return 'refused'
    if (verdict === 'held') continue
    assert.ok(filter.isDecided())
    return Buffer.concat([verdict, bytes.subarray(at + size)]).toString('latin1')
  }
  const rest = filter.end()
  return rest === 'refused' || rest === 'held' ? 'refused' : rest.toString('latin1')
}

test('a browser that reaches a raw port under another host is refused, in whatever pieces its bytes arrive', async () => {
  const hosts = [
    'muster.example',
    'MUSTER.example.:26005',
    'puddle.sites.example.net',
    'custom.example',
    'localhost',
    '',
  ]
  for (const size of [1, 7, 100_000]) {
    for (const host of hosts) assert.strictEqual(passed(request(host), size), 'refused', host)
    for (const host of [OWN, `${OWN}:26005`, 'ports.lobby.local.play.example.org', '192.0.2.1:26005', '[::1]:26005']) {
      assert.strictEqual(passed(request(host), size), request(host).toString('latin1'), host)
    }
  }
  for (const host of ['muster.example', 'puddle.sites.example.net', 'custom.example']) {
    const message = await hello(host)
    assert.deepStrictEqual(namedHost(message), { kind: 'host', host })
    for (const bytes of [message, inRecords(message, 1), inRecords(message, 50), inRecords(message, 3)]) {
      assert.strictEqual(passed(bytes, 7), 'refused', host)
    }
  }
  for (const host of [OWN, '']) {
    const message = await hello(host)
    assert.strictEqual(passed(message, 7), message.toString('latin1'), host)
  }
})

test('bytes that are no request and no handshake pass at once', () => {
  const games = [
    '\0',
    'hello\n',
    'GETX',
    'GET me a sword',
    'PUT\0',
    'get / HTTP/1.1\r\n',
    '\x16',
    '\x16\x02',
    '\x17\x03\x01',
  ]
  for (const text of [...games, 'MUST\x01', 'GET / HTTP/2.0\r\n', 'GET /\n', '\x16\x03\x01\0\x05\x02\0\0\0\0']) {
    const bytes = Buffer.from(text, 'latin1')
    assert.strictEqual(passed(bytes, 1), text, JSON.stringify(text))
    if (text !== '\x16') assert.strictEqual(createHostFilter(meaningOf).take(bytes), bytes, JSON.stringify(text))
  }
})

test('of a client that ends before its request names a host, only bytes without a cookie pass', () => {
  assert.strictEqual(passed(Buffer.from('GET /'), 1), 'GET /')
  assert.strictEqual(passed(Buffer.from('GET / HTTP/1.1\r\nCookie: a=secret\r\n'), 100), 'refused')
  assert.strictEqual(passed(Buffer.from('\x16\x03\x01\x02\0\x01', 'latin1'), 100), '\x16\x03\x01\x02\0\x01')
})

test('after the deadline only bytes without a cookie pass, and a host that is named later is still refused', async () => {
  const all = [request('muster.example'), await hello('muster.example'), request(OWN), await hello(OWN)]
  for (const bytes of all) {
    const is_tls = bytes[0] === 0x16
    const is_own = bytes.includes(OWN)
    for (let at = 1; at < bytes.length; at += 61) {
      const filter = createHostFilter(meaningOf)
      const [first, rest] = [bytes.subarray(0, at), bytes.subarray(at)]
      if (filter.take(first) !== 'held') break
      const passed_late = filter.late()
      const has_line = !is_tls && first.includes('\n')
      assert.deepStrictEqual(passed_late, has_line ? 'held' : first)
      assert.strictEqual(filter.isDecided(), false)
      const passed_first = passed_late === 'held' ? Buffer.alloc(0) : first
      const verdict = filter.take(rest)
      if (is_own) assert.deepStrictEqual(verdict, bytes.subarray(passed_first.length))
      else assert.strictEqual(verdict, 'refused')
      // The same byte by byte: no cookie passes before the host, whatever the order of the lines.
      if (is_own) continue
      const slow = createHostFilter(meaningOf)
      const bytewise = [...bytes].flatMap((byte) => {
        const one = slow.take(Buffer.from([byte]))
        const now = one === 'held' ? slow.late() : one
        return typeof now === 'string' ? [] : [now]
      })
      assert.ok(!Buffer.concat(bytewise).includes('secret'))
      assert.ok(Buffer.concat(bytewise).length < bytes.length)
    }
  }
})

test('no more bytes than the limit are kept back', () => {
  for (const start of ['GET /', 'GET / HTTP/1.1\r\nCookie: ', '\x16\x03\x03\xff\xff\x01\0\xff\xff']) {
    const filter = createHostFilter(meaningOf)
    let verdict = filter.take(Buffer.from(start, 'latin1'))
    let held = start.length
    while (verdict === 'held') {
      verdict = filter.take(Buffer.alloc(1, 'a'))
      held++
    }
    assert.strictEqual(verdict, 'refused')
    assert.strictEqual(held, NAMED_HOST_BYTES_MAX, start)
  }
})

test('a handshake with wrong lengths does not break the filter', async () => {
  const message = await hello('muster.example')
  for (let at = 5; at < message.length; at++) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const broken = Buffer.from(message)
      broken[at] = value
      assert.notStrictEqual(passed(broken, 100_000), undefined)
    }
  }
})
