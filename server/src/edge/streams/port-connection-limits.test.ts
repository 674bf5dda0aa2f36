import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PORT_CONNECTIONS_MAX, PORT_CONNECTIONS_PER_CLIENT_MAX } from '../limits.ts'
import { PortConnectionLimits } from './port-connection-limits.ts'

const [PORT, OTHER_PORT] = [26_000, 26_001]
const CLIENTS = PORT_CONNECTIONS_MAX / PORT_CONNECTIONS_PER_CLIENT_MAX

test('connections to a port are limited by client and in total, and each end makes room for one', () => {
  const limits = new PortConnectionLimits()
  const leaves: (() => void)[] = []
  for (let client = 0; client < CLIENTS; client++) {
    for (let count = 0; count < PORT_CONNECTIONS_PER_CLIENT_MAX; count++) {
      const leave = limits.enter(PORT, `client ${client}`)
      assert.ok(leave, `${count} of client ${client}`)
      leaves.push(leave)
    }
    assert.equal(limits.enter(PORT, `client ${client}`), null)
  }
  assert.equal(leaves.length, PORT_CONNECTIONS_MAX)
  assert.equal(limits.enter(PORT, 'somebody else'), null, 'the port is full')
  assert.ok(limits.enter(OTHER_PORT, 'client 0'), 'another port is free, also for a client that is at its limit here')

  for (let round = 0; round < 2; round++) {
    leaves.shift()?.()
    const leave = limits.enter(PORT, 'somebody else')
    assert.ok(leave)
    leaves.push(leave)
    assert.equal(limits.enter(PORT, 'a third'), null)
  }
  for (const leave of leaves) leave()
  assert.ok(limits.enter(PORT, 'client 0'))
})
