import assert from 'node:assert'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { type TestContext, test } from 'node:test'
import { PINGS_AT_ONCE_MAX, PORT_SILENT_MS, UDP_SESSIONS_PER_CLIENT_MAX } from '../../src/edge/limits.ts'
import { openDatagrams } from '../end-to-end/raw-server.ts'
import { until } from '../support/until.ts'
import { RAW_HOST, rawClient, startTestEdge } from './platform.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'

/** Starts a lobby's server, which sends back what `reply` returns for a datagram. */
async function startServer(t: TestContext, reply: (datagram: Buffer, source: RemoteInfo) => Buffer[], port = 0) {
  const socket = createSocket('udp4')
  const sources = new Set<number>()
  socket.on('error', () => {})
  socket.on('message', (datagram, source) => {
    sources.add(source.port)
    for (const sent of reply(datagram, source)) socket.send(sent, source.port, source.address)
  })
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  let is_open = true
  const close = () => {
    if (is_open) socket.close()
    is_open = false
  }
  t.after(close)
  return { port: socket.address().port, sources, close }
}

const echo = (datagram: Buffer): Buffer[] => [datagram]
const at = (number: number): string => `udp://${RAW_HOST}:${number}`

/** Sources on loopback are not validated. Sources with another address of this machine are, and stay local too. */
const ELSEWHERE = Object.values(networkInterfaces())
  .flat()
  .find((found) => found?.family === 'IPv4' && !found.internal)?.address
const FAR = { skip: ELSEWHERE === undefined && 'needs an address beside loopback' }

test('datagrams of every length arrive unchanged, one by one', async (t) => {
  const server = await startServer(t, echo)
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port)
  const player = await openDatagrams(t, at(number))
  const lengths = [0, 1, 2, 1_199, 1_200, 1_472, 1_473, 9_000, 65_507]
  for (let more = 0; more < 200; more++) lengths.push(Math.floor(Math.random() * 4_000))
  for (const length of lengths) {
    const sent = randomBytes(length)
    player.send(sent)
    assert.ok((await player.next()).equals(sent), `${length} bytes`)
  }
  assert.strictEqual(server.sources.size, 1, 'a source has one socket towards the lobby')
})

test('a hundred megabytes in datagrams of random lengths arrive unchanged and separate', async (t) => {
  const SUM = 100 * 1024 * 1024
  const LENGTH_MAX = 65_507
  const server = await startServer(t, echo)
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port)
  const player = await openDatagrams(t, at(number))
  const bytes = randomBytes(2 * LENGTH_MAX)
  const [sent, received] = [createHash('sha256'), createHash('sha256')]
  for (let sum = 0; sum < SUM; ) {
    // One after another, because a full buffer would lose datagrams.
    const begin = randomInt(LENGTH_MAX)
    const datagram = bytes.subarray(begin, begin + randomInt(LENGTH_MAX + 1))
    sum += datagram.length
    sent.update(datagram)
    player.send(datagram)
    const reply = await player.next()
    assert.strictEqual(reply.length, datagram.length)
    received.update(reply)
    if (datagram.length % 97 === 0) await new Promise((resolve) => setTimeout(resolve, randomInt(3)))
  }
  assert.strictEqual(received.digest('hex'), sent.digest('hex'))
  assert.strictEqual(server.sources.size, 1)
})

test('a client that returns from another port is another source, and each gets its own replies', async (t) => {
  const server = await startServer(t, (datagram, { port }) => [Buffer.from(`${datagram} ${port}`)])
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port)
  const players = await Promise.all(Array.from({ length: 20 }, () => openDatagrams(t, at(number))))
  for (const player of players) player.send(`from ${player.port}`)
  const replies = await Promise.all(players.map((player) => player.next()))
  assert.strictEqual(new Set(replies.map(String)).size, 20)
  for (const [index, player] of players.entries()) assert.ok(String(replies[index]).startsWith(`from ${player.port} `))
  assert.strictEqual(server.sources.size, 20)
})

test('the same source reaches a server that starts late, and one that is restarted', async (t) => {
  const first = await startServer(t, echo)
  first.close()
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', first.port)
  const player = await openDatagrams(t, at(number))
  player.send('lost')
  for (let life = 0; life < 2; life++) {
    const server = await startServer(t, echo, first.port)
    await until('a reply arrives', async () => {
      player.send(`life ${life}`)
      return player.received.some((datagram) => String(datagram) === `life ${life}`)
    })
    server.close()
  }
})

test('a lobby that requests it gets a PROXY header in front of every datagram', async (t) => {
  const server = await startServer(t, (datagram) => [Buffer.from(datagram.toString('hex'))])
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port, { proxy_protocol: true })
  const player = await openDatagrams(t, at(number))
  const ports = [player.port, number].map((port) => port.toString(16).padStart(4, '0')).join('')
  for (const text of ['one', '', 'two']) {
    player.send(text)
    assert.strictEqual(
      String(await player.next()),
      `${SIGNATURE}2112000c7f0000017f000002${ports}${Buffer.from(text).toString('hex')}`,
    )
  }
})

test('after its lobby has stopped a port forwards nothing, not even for its players', async (t) => {
  let seen = 0
  const server = await startServer(t, (datagram) => {
    seen++
    return [datagram]
  })
  const edge = await startTestEdge(t)
  const { lobby_id, number } = await edge.raw('udp', server.port)
  const other = await openDatagrams(t, at((await edge.raw('udp', (await startServer(t, echo)).port)).number))
  const player = await openDatagrams(t, at(number))
  player.send('here')
  await player.next()
  await edge.stopLobby(lobby_id)
  await until('no datagram reaches the server', async () => {
    const before = seen
    player.send('gone?')
    // A later datagram has come back, so the edge has handled the one before.
    other.send('mark')
    await other.next()
    return seen === before
  })
})

for (const transport of ['udp', 'tcp'] as const) {
  test(`a ${transport} port to which a client of an ended lobby still sends is given to no other lobby`, async (t) => {
    const edge = await startTestEdge(t, { env: { MUSTER_EDGE_PORTS_SPARE: '16' } })
    const { number, lobby_id } = await edge.raw(transport, 1)
    const socket = await openDatagrams(t, at(number))
    // As a client does that connects again and again.
    const send = async (): Promise<void> => {
      if (transport === 'udp') socket.send(Buffer.from('still here'))
      else await rawClient(t, number, RAW_HOST).end()
    }
    const isOffered = async (): Promise<boolean> => (await edge.openPorts(transport)).includes(number)
    await edge.stopLobby(lobby_id)
    await until('the port rests', async () => {
      await send()
      return !(await isOffered())
    })
    const rest_ms = PORT_SILENT_MS - 10_000
    // Longer than the quarantine: what is heard prolongs the rest.
    for (let round = 0; round < 2; round++) {
      edge.advance(rest_ms)
      await send()
      const { length } = await edge.openPorts(transport)
      await edge.raw(transport, 1)
      await until('the edge has opened a port for the next lobby', async () => {
        return (await edge.openPorts(transport)).length > length
      })
      assert.strictEqual(await isOffered(), false)
    }
    edge.advance(PORT_SILENT_MS)
    await until('the silent port is offered again', isOffered)
  })
}

test('the sources of one client are limited; active ones stay, and other clients still get in', async (t) => {
  const server = await startServer(t, echo)
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port)
  const players = await Promise.all(
    Array.from({ length: UDP_SESSIONS_PER_CLIENT_MAX }, () => openDatagrams(t, at(number), '127.0.0.2')),
  )
  for (const player of players) {
    player.send('in')
    await player.next()
  }
  const late = await openDatagrams(t, at(number), '127.0.0.2')
  late.send('too many')
  const other = await openDatagrams(t, at(number), '127.0.0.3')
  other.send('other')
  assert.strictEqual(String(await other.next()), 'other')
  for (const player of players) {
    player.send('still')
    assert.strictEqual(String(await player.next()), 'still')
  }
  assert.strictEqual(late.received.length, 0)
})

test('where a player token is required, nothing reaches the lobby before a validated source shows one', async (t) => {
  const seen: string[] = []
  const server = await startServer(t, (datagram) => {
    seen.push(String(datagram))
    return [Buffer.from(`got ${datagram}`)]
  })
  const edge = await startTestEdge(t)
  const { number, lobby_id, namespace_id } = await edge.raw('udp', server.port, { require_player_token: true })
  const { ctx } = edge
  const issue = (of_lobby: string) =>
    ctx.keys.issue(
      { kind: 'player', player_id: crypto.randomUUID(), lobby_id: of_lobby, namespace_id },
      { now_ms: ctx.now(), lifetime_ms: 60_000 },
    )
  const token = issue(lobby_id)
  const message = (kind: number, ...rest: (string | Buffer)[]) =>
    Buffer.concat([Buffer.from('MUST'), Buffer.from([kind]), ...rest.map((part) => Buffer.from(part))])

  const player = await openDatagrams(t, at(number))
  player.send('let me in')
  player.send(message(3, randomBytes(16), token))
  player.send(message(1, token))
  const cookie = await player.next()
  assert.deepStrictEqual([cookie.length, cookie.subarray(0, 5)], [21, message(2)])

  // The cookie is valid only for the source that received it.
  const thief = await openDatagrams(t, at(number))
  thief.send(message(3, cookie.subarray(5), token))
  player.send(message(3, cookie.subarray(5), issue(crypto.randomUUID())))
  assert.deepStrictEqual(await player.next(), message(5))
  player.send(message(3, cookie.subarray(5), token))
  const replies = [String(await player.next()), String(await player.next())].sort()
  assert.deepStrictEqual(replies, [String(message(4)), `got ${token}`])
  player.send(message(3, cookie.subarray(5), token))
  assert.deepStrictEqual(await player.next(), message(4), 'the acceptance is repeated')
  player.send('a game')
  assert.strictEqual(String(await player.next()), 'got a game')
  assert.deepStrictEqual(seen, [token, 'a game'])
  assert.strictEqual(thief.received.length, 0)
})

test(
  'a source gets at most three times its bytes until it shows the cookie, whatever else it sends',
  FAR,
  async (t) => {
    // Bytes that every player of the game knows, and bytes that only a receiver knows: the edge cannot distinguish them.
    const BANNER = Buffer.from('Welcome to Puddle Racers, protocol 7, press any key. ')
    let reply_count = 0
    const seen: string[] = []
    const server = await startServer(t, (datagram) => {
      reply_count++
      seen.push(datagram.toString('latin1'))
      return Array.from({ length: 10 }, () => Buffer.concat([BANNER, randomBytes(47)]))
    })
    const edge = await startTestEdge(t)
    const { number, lobby_id, namespace_id } = await edge.raw('udp', server.port)
    const marks = await openDatagrams(t, at((await edge.raw('udp', (await startServer(t, echo)).port)).number))
    const source = await openDatagrams(t, at(number), ELSEWHERE)
    const sumOf = (): number => source.received.reduce((sum, datagram) => sum + datagram.length, 0)
    /** Sends one after another and awaits all replies, so that no full buffer loses any. */
    const ask = async (datagram: Buffer): Promise<void> => {
      const before = reply_count
      source.send(datagram)
      await until('the server has replied', () => reply_count > before)
      // The edge handles the server's datagrams in order.
      for (let round = 0; round < 3; round++) {
        marks.send('mark')
        await marks.next()
      }
    }
    let sent = 0
    const asked = async (datagram: Buffer): Promise<void> => {
      await ask(datagram)
      sent += datagram.length
      assert.ok(sumOf() <= 3 * sent, `${sumOf()} bytes for ${sent}`)
    }
    for (const length of [0, 1, 40, 100, 333]) await asked(randomBytes(length))
    assert.ok(sumOf() > sent, 'what is allowed arrives')
    await asked(BANNER)
    // A forger may have bought this token from a real player.
    await asked(source.received[0]!)
    for (const datagram of source.received.slice(0, 4)) await asked(datagram.subarray(40))

    const message = (kind: number, ...rest: (string | Buffer)[]) =>
      Buffer.concat([Buffer.from('MUST'), Buffer.from([kind]), ...rest.map((part) => Buffer.from(part))])
    const issue = (of_lobby: string) =>
      edge.ctx.keys.issue(
        { kind: 'player', player_id: crypto.randomUUID(), lobby_id: of_lobby, namespace_id },
        { now_ms: edge.ctx.now(), lifetime_ms: 60_000 },
      )
    const token = issue(lobby_id)
    source.received.length = 0
    source.send(message(1, token))
    const cookie = (await source.next()).subarray(5)
    assert.strictEqual(cookie.length, 16)
    // A cookie of another source, a token without a cookie, and a cookie without a seat are all refused.
    const other = await openDatagrams(t, at(number), ELSEWHERE)
    other.send(message(1, token))
    source.send(message(3, (await other.next()).subarray(5), token))
    source.send(message(3, randomBytes(16), token))
    source.send(message(3, cookie, issue(crypto.randomUUID())))
    assert.deepStrictEqual(await source.next(), message(5))
    const before = reply_count
    source.send(message(3, cookie, token))
    assert.deepStrictEqual(await source.next(), message(4))
    assert.strictEqual(reply_count, before, 'the game receives no message of the handshake')
    source.send('x')
    for (let reply = 0; reply < 10; reply++) assert.strictEqual((await source.next()).length, 100)
    assert.ok(seen.every((text) => !text.startsWith('MUST')))
  },
)

test('unvalidated sources of one client displace each other, and take no place of another client', FAR, async (t) => {
  const server = await startServer(t, (datagram, { port }) => [Buffer.concat([datagram, Buffer.from(` ${port}`)])])
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('udp', server.port)
  const player = await openDatagrams(t, at(number), '127.0.0.2')
  player.send('in')
  const place = String(await player.next())
  for (let count = 0; count < UDP_SESSIONS_PER_CLIENT_MAX + 50; count++) {
    const source = await openDatagrams(t, at(number), ELSEWHERE)
    source.send(`source ${count}`)
    assert.ok(String(await source.next()).startsWith(`source ${count} `))
  }
  player.send('in')
  assert.strictEqual(String(await player.next()), place, 'the player still has its own socket towards the lobby')
})

test('the echo returns a ping with as many bytes, and a limited number of them to one client', async (t) => {
  const free = await startServer(t, () => [])
  free.close()
  const edge = await startTestEdge(t, { env: { MUSTER_EDGE_PING_PORT: String(free.port) } })
  edge.holdClock()
  const player = await openDatagrams(t, at(free.port))
  const ping = (number: number): Buffer => Buffer.from(`MUST\x06${String(number).padStart(8, '0')}`)
  player.send(Buffer.from('MUST\x06short'))
  const sent = PINGS_AT_ONCE_MAX + 5
  for (let number = 0; number < sent; number++) player.send(ping(number))
  for (let number = 0; number < PINGS_AT_ONCE_MAX; number++) {
    assert.strictEqual((await player.next()).toString('latin1'), `MUST\x07${String(number).padStart(8, '0')}`)
  }
  await until('a ping is returned again', async () => {
    // A tenth of a second is worth one more.
    edge.advance(100)
    player.send(ping(sent))
    return (await player.next()).toString('latin1').endsWith(`0${sent}`)
  })
})
