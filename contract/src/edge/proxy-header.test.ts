import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyHeader } from './proxy-header.ts'

const FROM = { address: '192.0.2.1', port: 4_000 }
const TO = { address: '192.0.2.2', port: 80 }
/** Length of the fixed part and two IPv4 addresses with their ports. */
const HEAD_BYTES = 28

test('a PROXY header has the id of the player, and the role of a spectator after it', () => {
  const entries = (is_spectator?: boolean) =>
    proxyHeader('stream', FROM, TO, { player_id: 'ada', ...(is_spectator !== undefined && { is_spectator }) }).subarray(
      HEAD_BYTES,
    )
  const id = '\x05\x00\x03ada'
  assert.equal(entries().toString('latin1'), id)
  assert.equal(entries(false).toString('latin1'), id)
  assert.equal(entries(true).toString('latin1'), `${id}\xe0\x00\x09spectator`)
  const header = proxyHeader('stream', FROM, TO, { player_id: 'ada', is_spectator: true })
  assert.equal(header.readUInt16BE(14), header.length - 16)
  assert.equal(proxyHeader('stream', FROM, TO).length, HEAD_BYTES)
})
