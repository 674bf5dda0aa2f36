// Events by WebSocket, through the edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { createParty, findLobby, getParty, joinParty, setupIdentity } from '@musterhost/contract'
import { WebSocket } from 'ws'
import { rawClient } from '../edge/platform.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'

type News = { events: { event_id: string; kind: object }[]; watch: { index: string } }

/** Reads the messages of a socket, in order. */
function listen(url: string, options: { origin?: string } = {}) {
  const socket = new WebSocket(url, options)
  const told: News[] = []
  let wake = Promise.withResolvers<void>()
  socket.on('message', (data) => {
    told.push(JSON.parse(String(data)) as News)
    wake.resolve()
    wake = Promise.withResolvers()
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(([code]) => code as number)
  const refused = new Promise<number>((resolve) =>
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0)),
  )
  return {
    socket,
    closed,
    refused,
    async next(): Promise<News> {
      while (told.length === 0) await wake.promise
      return told.shift()!
    },
  }
}

const live = (platform: Platform, token: string, more = '') =>
  `${platform.edge_url.replace('http', 'ws')}/identity/events/live?identity_token=${encodeURIComponent(token)}${more}`

async function world(t: TestContext) {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 100 } })
  return { platform, game, token: await tokenOf(game) }
}

async function tokenOf(game: TestGame): Promise<string> {
  return (await game.player.call(setupIdentity, { body: {} })).identity_token
}

test('a socket receives the events of a long poll, and continues after the index that it was opened with', async (t) => {
  const { platform, game, token } = await world(t)
  const leader = platform.as(token)
  const other = await tokenOf(game)
  const { party } = await leader.call(createParty, {})
  await platform.as(other).call(joinParty, { body: { code: party.code } })
  const origin = new URL(`http://${game.name_id}.cdn.localhost:${new URL(platform.edge_url).port}`).origin
  const listening = listen(live(platform, other), { origin })
  const first = await listening.next()
  assert.deepEqual(first.events, [])
  assert.equal(listening.socket.extensions, '', 'nothing is packed')
  const find = () => leader.call(findLobby, { body: { game_modes: ['default'], party: true } })
  const [one, two] = [await find(), await find()]
  const told = [(await listening.next()).events, (await listening.next()).events].flat()
  assert.deepEqual(
    told.map(({ kind }) => (kind as { matchmaker_lobby_join: typeof one }).matchmaker_lobby_join.lobby.lobby_id),
    [one.lobby.lobby_id, two.lobby.lobby_id],
  )
  // Not through the edge, which stops before the matchmaker.
  const direct = live(platform, other, `&watch_index=${first.watch.index}`).replace(
    /:\d+/,
    `:${new URL(platform.matchmaker_url).port}`,
  )
  const again = listen(direct)
  assert.deepEqual((await again.next()).events, told)
  assert.equal((await leader.call(getParty, {})).party.members.length, 2)
  await platform.close()
  assert.equal(await again.closed, 1001)
})

test('a client without permission is refused before the upgrade, and one that sends too much is disconnected', async (t) => {
  const { platform, game, token } = await world(t)
  const other_game = await platform.game()
  const refused = async (url: string, origin?: string) => listen(url, origin === undefined ? {} : { origin }).refused
  assert.equal(await refused(live(platform, 'nonsense')), 401)
  assert.equal(await refused(live(platform, game.public_token)), 403)
  assert.equal(await refused(live(platform, token, '&watch_index=x')), 400)
  const port = new URL(platform.edge_url).port
  for (const origin of ['http://evil.example', `http://${other_game.name_id}.cdn.localhost:${port}`]) {
    assert.equal(await refused(live(platform, token), origin), 403)
  }
  const elsewhere = live(platform, token).replace('/identity/events/live', '/matchmaker/lobbies/list')
  assert.notEqual(await refused(elsewhere), 101)

  const long = listen(live(platform, token))
  await long.next()
  long.socket.send('x'.repeat(2_000))
  assert.equal(await long.closed, 1009)
  const talkative = listen(live(platform, token))
  await talkative.next()
  for (let count = 0; count < 40; count++) talkative.socket.send('hello')
  assert.equal(await talkative.closed, 1008)
  const pinging = listen(live(platform, token))
  await pinging.next()
  for (let count = 0; count < 40; count++) pinging.socket.ping()
  assert.equal(await pinging.closed, 1008)

  // All sockets that an identity may have; one more must retry.
  const many = Array.from({ length: 8 }, () => listen(live(platform, token)))
  for (const one of many) await one.next()
  assert.equal(await listen(live(platform, token)).closed, 1013)
  for (const one of many) one.socket.terminate()
})

test('a flood of frames ends its socket with a reason, and no other socket', async (t) => {
  const { platform, token } = await world(t)
  const { pathname, search, port } = new URL(live(platform, token))
  const quiet = listen(live(platform, token))
  await quiet.next()

  const FEW = 40
  const MANY = 50_000
  const repeated = (count: number, frame: Buffer): Buffer[] => Array.from({ length: count }, () => frame)
  const [CONTINUES, TEXT, BINARY, PING, PONG] = [0, 1, 2, 9, 10]
  const piece = (text: string) => frame(CONTINUES, text, { is_last: false })
  const begin = (text: string) => frame(TEXT, text, { is_last: false })
  const repeatedly: Record<string, (count: number) => Buffer[]> = {
    'pieces without bytes or end': (count) => [begin('x'), ...repeated(count, piece(''))],
    pings: (count) => repeated(count, frame(PING, 'x'.repeat(125))),
    'unsolicited pongs': (count) => repeated(count, frame(PONG, '')),
    'messages without bytes': (count) => repeated(count, frame(TEXT, '')),
  }
  const floods: Record<string, [code: number | null, frames: Buffer[]]> = {
    'pieces that are together too long': [1009, [begin('x'.repeat(100)), ...repeated(20, piece('x'.repeat(100)))]],
    'a message that says it is long': [1009, [frame(BINARY, '', { length: 2 ** 40 })]],
    // A kilobyte that would unpack to a megabyte.
    'a packed message': [1002, [frame(TEXT, deflateRawSync(Buffer.alloc(1024 * 1024)), { is_packed: true })]],
    'half of a packed message': [1002, [frame(TEXT, 'x', { is_packed: true, is_last: false })]],
  }
  for (const [name, frames] of Object.entries(repeatedly)) {
    floods[`a few ${name}`] = [1008, frames(FEW)]
    // A client that keeps sending may lose the reason.
    floods[`many ${name}`] = [null, frames(MANY)]
  }
  for (const [code, frames] of Object.values(floods)) {
    const client = rawClient(t, Number(port))
    client.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
        'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n',
    )
    const head = await client.read((bytes) => bytes.includes('"watch"'))
    assert.match(head, /^HTTP\/1\.1 101 /)
    assert.doesNotMatch(head, /sec-websocket-extensions/i, 'nothing is packed')
    client.write(Buffer.concat(frames))
    if (code !== null) await client.read((bytes) => bytes.includes(closing(code)))
    await client.end()
  }

  assert.equal(quiet.socket.readyState, WebSocket.OPEN)
  quiet.socket.ping()
  await once(quiet.socket, 'pong')
  quiet.socket.terminate()
})

type FrameOptions = { is_last?: boolean; is_packed?: boolean; length?: number }

/** A frame of a client, masked with zeros. `length`: the length in its header. */
function frame(opcode: number, payload: string | Buffer, options: FrameOptions = {}): Buffer {
  const bytes = Buffer.from(payload)
  const { is_last = true, is_packed = false, length = bytes.length } = options
  const head = Buffer.alloc(14)
  head[0] = (is_last ? 0x80 : 0) | (is_packed ? 0x40 : 0) | opcode
  if (length < 126) head[1] = 0x80 | length
  else {
    head[1] = 0x80 | 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  const head_length = length < 126 ? 6 : 14
  return Buffer.concat([head.subarray(0, head_length), bytes])
}

/** The beginning of a close frame of the server with this code, after its length. */
function closing(code: number): string {
  return Buffer.from([code >> 8, code & 0xff]).toString('latin1')
}
