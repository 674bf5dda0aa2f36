import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { type TestContext, test } from 'node:test'
import { TestLobby } from '../test-lobby.ts'
import { seededRandom, until } from '../test-server.ts'
import { a2s } from './a2s.ts'
import { parseGoDuration } from './duration.ts'
import { MultiplayEndpoint } from './multiplay.ts'
import { ask } from './query.ts'
import { sqp } from './sqp.ts'

type Answer = (request: Buffer) => Buffer | null

/** A server with a query port, written from the tables of the two languages. Returns its port. */
async function queryServer(t: TestContext, answer: Answer): Promise<number> {
  const socket = createSocket('udp4')
  socket.on('message', (request, { port, address }) => {
    const reply = answer(request)
    if (reply !== null) socket.send(reply, port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  t.after(() => socket.close())
  return socket.address().port
}

const counted = (text: string) => Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)])

const sqpServer: Answer = (request) => {
  if (request.equals(Buffer.from('0000000000', 'hex'))) return Buffer.from('00deadbeef', 'hex')
  assert.equal(request.toString('hex'), '01deadbeef000101')
  const info = Buffer.concat([
    Buffer.from([0, 3, 0, 16]),
    counted('My server'),
    counted('duel'),
    counted('build-7'),
    counted('ice'),
    Buffer.from([0x1e, 0x61]),
  ])
  const lengths = Buffer.alloc(6)
  lengths.writeUInt16BE(info.length + 4, 0)
  lengths.writeUInt32BE(info.length, 2)
  return Buffer.concat([Buffer.from('01deadbeef00010000', 'hex'), lengths, info])
}

function a2sServer(has_challenge: boolean): Answer {
  const plain = Buffer.from('ffffffff54536f7572636520456e67696e6520517565727900', 'hex')
  return (request) => {
    if (has_challenge && request.equals(plain)) return Buffer.from('ffffffff4101020304', 'hex')
    if (has_challenge) assert.equal(request.subarray(plain.length).toString('hex'), '01020304')
    const text = 'My server\0ice\0folder\0duel\0'
    return Buffer.concat([Buffer.from('ffffffff4911', 'hex'), Buffer.from(text), Buffer.from([0, 0, 5, 16, 0, 0x64])])
  }
}

test('SQP returns the players after a challenge', async (t) => {
  const port = await queryServer(t, sqpServer)
  assert.deepEqual(await ask(sqp, { host: '127.0.0.1', port, timeout_ms: 5_000 }), {
    players: 3,
    max_players: 16,
    name: 'My server',
    game: 'duel',
    map: 'ice',
  })
})

test('A2S returns the players with a challenge and without one', async (t) => {
  for (const has_challenge of [false, true]) {
    const port = await queryServer(t, a2sServer(has_challenge))
    const { players, max_players, name, map } = await ask(a2s, { host: '127.0.0.1', port, timeout_ms: 5_000 })
    assert.deepEqual(
      { players, max_players, name, map },
      { players: 5, max_players: 16, name: 'My server', map: 'ice' },
    )
  }
})

test('a server that says nothing, or only challenges, ends the question', async (t) => {
  const silent = await queryServer(t, () => null)
  await assert.rejects(ask(sqp, { host: '127.0.0.1', port: silent, timeout_ms: 20 }), /No response within 20 ms/)
  const endless = await queryServer(t, () => Buffer.from('00deadbeef', 'hex'))
  await assert.rejects(ask(sqp, { host: '127.0.0.1', port: endless, timeout_ms: 5_000 }), /not valid/)
})

test('no reply, cut or random, is more than a refusal', () => {
  const random = seededRandom(3)
  const replies = [sqpServer(Buffer.from('01deadbeef000101', 'hex')), a2sServer(false)(Buffer.alloc(0))]
  for (const reply of replies) {
    for (let length = 0; length < (reply?.length ?? 0) - 2; length++) {
      const cut = reply?.subarray(0, length) ?? Buffer.alloc(0)
      for (const { next } of [sqp, a2s]) assert.ok(next(cut) === null || length > 5)
    }
  }
  for (let count = 0; count < 1_000; count++) {
    const bytes = Buffer.from(Array.from({ length: random(40) }, () => random(256)))
    bytes.fill(random(2) === 0 ? 0xff : random(2), 0, Math.min(4, bytes.length))
    for (const { next } of [sqp, a2s]) {
      const result = next(bytes)
      assert.ok(result === null || Buffer.isBuffer(result) || Number.isInteger(result.players))
    }
  }
})

test('the players of a query port are shown, and no seat is changed', async (t) => {
  let is_silent = false
  const port = await queryServer(t, (request) => (is_silent ? null : sqpServer(request)))
  const where = { hostname: 'h', port: 1, url: 'udp://h:1' }
  const lobby = new TestLobby({
    ports: [
      { name: 'game', protocol: 'udp', listening: 7777, public: where },
      { name: 'query', protocol: 'udp', listening: port, public: where },
    ],
  })
  lobby.seat('a')
  const endpoint = new MultiplayEndpoint(lobby, {}, 's', { interval_ms: 5, timeout_ms: 50 })
  t.after(() => endpoint.close())
  await until('players', () => lobby.reports.at(-1)?.state === 'Allocated, 3 players')
  assert.equal(lobby.reports.at(-1)?.is_healthy, true)
  is_silent = true
  await until('silence', () => lobby.reports.at(-1)?.state === 'Allocated')
  assert.equal(lobby.reports.at(-1)?.is_healthy, false)
  assert.deepEqual(lobby.calls, [])
})

test('durations are read as Go writes them', () => {
  const known: [string, number | null][] = [
    ['2m', 120_000],
    ['1h2m3.5s', 3_723_500],
    ['2m0s', 120_000],
    ['1.5h', 5_400_000],
    ['100ms', 100],
    ['1us', 0.001],
    ['0', 0],
    ['0s', 0],
    ['', null],
    ['2', null],
    ['-1s', null],
    ['1d', null],
    ['m', null],
    ['.s', null],
    ['1m 2s', null],
  ]
  for (const [text, ms] of known) assert.equal(parseGoDuration(text), ms, text)
})
