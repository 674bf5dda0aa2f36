// What a version config may say about who checks the seats.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkAdmission } from './admission-check.ts'

type Docker = Parameters<typeof checkAdmission>[0]

function refusalsOf(docker: Docker): string[] {
  return checkAdmission(docker, ['docker']).map(({ path, reason }) => `${path.join('.')} ${reason}`)
}

test('members of seats that the platform checks are refused where the server checks them', () => {
  const port = { admit_by: ['query' as const], token_name: 'seat', keep_token: true, several_connections: true }
  assert.deepEqual(refusalsOf({ hold_ms: 1, player_addresses: true, ports: { game: port } }), [
    'docker.hold_ms needs_edge_seats',
    'docker.player_addresses needs_edge_seats',
    'docker.ports.game.admit_by needs_edge_seats',
    'docker.ports.game.token_name needs_edge_seats',
    'docker.ports.game.keep_token needs_edge_seats',
    'docker.ports.game.several_connections needs_edge_seats',
  ])
  assert.deepEqual(refusalsOf({ seats: 'edge', hold_ms: 1, player_addresses: true, ports: { game: port } }), [])
})

test('a port admits players only in ways that its protocol has', () => {
  const ports: Docker['ports'] = {
    web: { protocol: 'http', admit_by: ['cookie', 'header'] },
    page: { protocol: 'https', admit_by: ['address'] },
    raw: { protocol: 'tcp', admit_by: ['handshake'] },
    both: { protocol: 'tcp_tls', admit_by: ['first_line', 'address'] },
    voice: { protocol: 'udp', admit_by: ['address'], several_connections: true },
  }
  assert.deepEqual(refusalsOf({ seats: 'edge', ports }), [
    'docker.ports.page.admit_by not_allowed',
    'docker.ports.raw.admit_by not_allowed',
    'docker.ports.both.admit_by too_many',
    'docker.ports.voice.several_connections not_allowed',
  ])
})

test('a range of ports is refused, because no proxy is in front of it', () => {
  const ports: Docker['ports'] = { game: { protocol: 'udp', proxy: 'none', port_range: { min: 7_000, max: 7_010 } } }
  assert.deepEqual(refusalsOf({ seats: 'edge', ports }), ['docker.ports.game.port_range conflicts'])
  assert.deepEqual(refusalsOf({ ports }), [])
})
