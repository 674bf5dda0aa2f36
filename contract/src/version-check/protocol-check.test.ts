import assert from 'node:assert'
import { test } from 'node:test'
import type { VersionConfig } from '../version-config.ts'
import { checkProtocol } from './protocol-check.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

function wrongs(docker: Docker, is_swarm = false): string[] {
  const errors = checkProtocol(docker, { is_swarm }, ['docker'])
  for (const error of errors) assert.match(error.message, /^\w.*\.$/)
  return errors.map(({ path, reason }) => `${path.slice(1).join('.')} ${reason}`)
}

test('a protocol is good with its own options, and with seats of the edge', () => {
  const lists = { players: { values: ['one'], capacity: 1 } }
  assert.deepStrictEqual(wrongs({}), [])
  assert.deepStrictEqual(
    wrongs({ protocol: 'agones', protocol_options: { counters: { rooms: { count: 1 } }, lists } }),
    [],
  )
  assert.deepStrictEqual(wrongs({ protocol: 'gsdk', seats: 'edge', protocol_options: { metadata: { a: 'b' } } }), [])
  assert.deepStrictEqual(wrongs({ protocol: 'gamelift', ready: 'protocol', seats: 'protocol' }), [])
})

test('what needs a protocol is refused without one', () => {
  const docker: Docker = { seats: 'protocol', ready: 'protocol', protocol_options: {} }
  assert.deepStrictEqual(wrongs(docker), [
    'seats needs_protocol',
    'ready needs_protocol',
    'protocol_options needs_protocol',
  ])
})

test('options of another protocol, and values above a capacity, are refused', () => {
  assert.deepStrictEqual(wrongs({ protocol: 'agones', protocol_options: { lists: { a: {} }, room: 'a' } }), [])
  assert.deepStrictEqual(wrongs({ protocol: 'agones', protocol_options: { lists: { a: {} }, room: 'b' } }), [
    'protocol_options.room not_found',
  ])
  assert.deepStrictEqual(wrongs({ protocol: 'gsdk', protocol_options: { room: 'b' } }), [
    'protocol_options.room not_allowed',
  ])
  assert.deepStrictEqual(wrongs({ protocol: 'gsdk', protocol_options: { lists: {}, counters: {} } }), [
    'protocol_options.counters not_allowed',
    'protocol_options.lists not_allowed',
  ])
  assert.deepStrictEqual(wrongs({ protocol: 'agones', protocol_options: { metadata: {} } }), [
    'protocol_options.metadata not_allowed',
  ])
  const options = { counters: { a: { count: 2, capacity: 1 } }, lists: { b: { values: ['x', 'y'], capacity: 1 } } }
  assert.deepStrictEqual(wrongs({ protocol: 'agones', protocol_options: options }), [
    'protocol_options.counters.a too_large',
    'protocol_options.lists.b too_many',
  ])
})

test('the files of a protocol count among those of a lobby', () => {
  const files = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, '']))
  assert.deepStrictEqual(wrongs({ protocol: 'agones', files }), [])
  assert.deepStrictEqual(wrongs({ protocol: 'gsdk', files }), ['files too_many'])
})

test('a protocol is refused where its server has no loopback interface of its own', () => {
  assert.deepStrictEqual(wrongs({ protocol: 'agones', network_mode: 'host' }), ['network_mode conflicts'])
  assert.deepStrictEqual(wrongs({ protocol: 'agones' }, true), ['protocol not_available'])
})
