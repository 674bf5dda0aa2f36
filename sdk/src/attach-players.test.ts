import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPlayers, isRefusal, type Refusal, type Use } from './attach-players.ts'
import { openLobby } from './server.ts'

/** A lobby without the platform, which records whose seats were given back. */
function open() {
  const left: string[] = []
  const lobby = {
    ...openLobby({ environment: {}, log: () => {} }),
    disconnected: async (token: string) => void left.push(token),
  }
  return { left, players: createPlayers({ lobby, hold_ms: 0, log: () => {} }) }
}

function admitted(outcome: Use | Refusal): Use {
  assert.ok(!isRefusal(outcome))
  return outcome
}

test('a player who only sends requests keeps the seat between them, and loses it when no more come', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { players, left } = open()
  const poll = async () => admitted(await players.admit('p1')).end('request')
  await poll()
  t.mock.timers.tick(29_000)
  await poll()
  t.mock.timers.tick(29_000)
  assert.deepEqual(left, [])
  t.mock.timers.tick(1_000)
  assert.deepEqual(left, ['p1'])
})

test('a token that waits for the platform keeps no more than a bounded number of others waiting', async () => {
  const { players } = open()
  const outcomes = await Promise.all(Array.from({ length: 300 }, (_, count) => players.admit(`p${count}`)))
  const refused = outcomes.filter(isRefusal)
  assert.equal(refused.length, 44)
  assert.equal(refused[0]?.code, 'LOBBY_BUSY')
})

test('one player has a bounded number of connections', async () => {
  const { players } = open()
  for (let count = 0; count < 64; count++) admitted(await players.admit('p1'))
  const more = await players.admit('p1')
  assert.ok(isRefusal(more) && more.status === 429)
})
