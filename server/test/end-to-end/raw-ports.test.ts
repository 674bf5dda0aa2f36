// Raw TCP and UDP games on the real platform: a build is uploaded, find starts it, and its players speak to it through
// the edge.
import assert from 'node:assert'
import { test } from 'node:test'
import { findLobby } from '@muster/contract'
import { startPlatform } from '../platform.ts'
import { dial, openDatagrams, RAW_SERVER } from './raw-server.ts'

test('a raw TCP and a raw UDP game are played through the edge at the addresses that find answers', {
  timeout: 20_000,
}, async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game({
    files: { 'server.mjs': RAW_SERVER },
    docker: { ports: { game: { protocol: 'tcp' }, voice: { protocol: 'udp' } } },
  })
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  for (const [name, scheme] of [
    ['game', 'tcp'],
    ['voice', 'udp'],
  ] as const) {
    const { port, ...rest } = seat.ports[name]!
    assert.ok(port !== undefined && port >= 26_000 && port <= 31_999)
    const host = `127.0.0.1:${port}`
    assert.deepStrictEqual(rest, { host, hostname: '127.0.0.1', is_tls: false, url: `${scheme}://${host}` })
  }

  const stranger = dial(t, seat.ports.game!.url)
  stranger.write('no token')
  assert.strictEqual(await stranger.line(), null)

  const player = dial(t, seat.ports.game!.url)
  player.write(seat.player.token)
  assert.strictEqual(await player.line(), 'welcome')
  player.write('hello')
  assert.strictEqual(await player.line(), 'HELLO')
  // Half closed: what was asked for still comes.
  player.socket.end('last\n')
  assert.deepStrictEqual([await player.line(), await player.line(), await player.line()], ['LAST', 'bye', null])

  const [one, other] = [await openDatagrams(t, seat.ports.voice!.url), await openDatagrams(t, seat.ports.voice!.url)]
  one.send('ping')
  other.send('pong!')
  assert.deepStrictEqual([String(await one.next()), String(await other.next())], ['4:ping', '5:pong!'])
  one.send('')
  assert.strictEqual(String(await one.next()), '0:')
})
