import assert from 'node:assert'
import { test } from 'node:test'
import type { PortRange, VersionConfig } from '../version-config.ts'
import { checkPorts } from './port-check.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Ports = NonNullable<Docker['ports']>

const HOST_RANGES: PortRange[] = [
  { min: 27_000, max: 27_999 },
  { min: 40_000, max: 40_100 },
]
const range = (min: number, max: number) => ({ port_range: { min, max } })

function wrongs(ports: Ports, network_mode?: Docker['network_mode'], ranges = HOST_RANGES): string[] {
  const rules = { host_ranges: ranges, has_certificates: true, is_swarm: false }
  const errors = checkPorts({ ports, ...(network_mode && { network_mode }) }, rules, ['docker'])
  for (const error of errors) assert.match(error.message, /^\w.*\.$/)
  return errors.map(({ path, reason }) => `${path.join('.')} ${reason}`)
}

test('ports of every protocol, with what they may say of themselves, are good', () => {
  assert.deepStrictEqual(
    wrongs({
      web: { protocol: 'http', proxy: 'game_guard' },
      rest: {},
      raw: { protocol: 'tcp', proxy_protocol: true },
      voice: { protocol: 'udp', proxy_protocol: true, require_player_token: true },
    }),
    [],
  )
  assert.deepStrictEqual(
    wrongs(
      {
        many: { protocol: 'udp', ...range(27_000, 27_010), proxy: 'none' },
        more: { protocol: 'tcp', ...range(27_005, 27_999) },
        one: { protocol: 'udp', ...range(27_011, 27_011) },
        web: { protocol: 'http' },
      },
      'host',
    ),
    [],
  )
})

test('a range is of tcp or udp ports, in network mode host, in order, and within what the operator gives', () => {
  const cases: [Ports[string], string[]][] = [
    [{ protocol: 'http', ...range(27_000, 27_001) }, ['docker.ports.x.protocol not_allowed']],
    [{ ...range(27_000, 27_001) }, ['docker.ports.x.protocol not_allowed']],
    [{ protocol: 'tcp', ...range(27_001, 27_000) }, ['docker.ports.x.port_range range_min_gt_max']],
    [{ protocol: 'tcp', ...range(26_999, 27_000) }, ['docker.ports.x.port_range port_out_of_range']],
    [{ protocol: 'udp', ...range(27_990, 28_000) }, ['docker.ports.x.port_range port_out_of_range']],
    [{ protocol: 'udp', ...range(27_999, 40_000) }, ['docker.ports.x.port_range port_out_of_range']],
    [{ protocol: 'udp', port: 5, ...range(27_000, 27_000) }, ['docker.ports.x.port conflicts']],
    [{ protocol: 'udp', ...range(27_000, 27_000), proxy: 'game_guard' }, ['docker.ports.x.proxy not_allowed']],
    [
      { protocol: 'udp', ...range(27_000, 27_000), proxy_protocol: true, require_player_token: true },
      ['docker.ports.x.proxy_protocol not_allowed', 'docker.ports.x.require_player_token not_allowed'],
    ],
  ]
  for (const [port, expected] of cases) assert.deepStrictEqual(wrongs({ x: port }, 'host'), expected)
  assert.deepStrictEqual(wrongs({ x: { protocol: 'udp', ...range(27_000, 27_001) } }), [
    'docker.ports.x.port_range needs_host_network',
  ])
  assert.deepStrictEqual(wrongs({ x: { protocol: 'udp', ...range(27_000, 27_001) } }, 'host', []), [
    'docker.network_mode host_networking_disabled',
    'docker.ports.x.port_range port_out_of_range',
  ])
})

test('a port may have a number, which no other port of its transport has, and none in network mode host', () => {
  const fixed: Ports = {
    'my-game': { protocol: 'tcp', port: 7_777 },
    voice: { protocol: 'udp', port: 7_777 },
    web: { protocol: 'http' },
  }
  assert.deepStrictEqual(wrongs(fixed), [])
  assert.deepStrictEqual(wrongs({ a: { protocol: 'tcp', port: 7_777 }, b: { protocol: 'http', port: 7_777 } }), [
    'docker.ports.b.port ports_overlap',
  ])
  assert.deepStrictEqual(wrongs({ a: { protocol: 'tcp', port: 7_777 } }, 'host'), ['docker.ports.a.port not_supported'])
})

test('options that a protocol does not have are refused, and so are ranges that collide', () => {
  assert.deepStrictEqual(
    wrongs({
      a: { protocol: 'http', proxy_protocol: true },
      b: { protocol: 'tcp', require_player_token: true },
      c: { protocol: 'tcp', proxy: 'none' },
    }),
    [
      'docker.ports.a.proxy_protocol not_allowed',
      'docker.ports.b.require_player_token not_allowed',
      'docker.ports.c.proxy needs_game_guard',
    ],
  )
  assert.deepStrictEqual(
    wrongs(
      {
        a: { protocol: 'udp', ...range(27_000, 27_010) },
        b: { protocol: 'udp', ...range(27_010, 27_020) },
        c: { protocol: 'tcp', ...range(27_000, 27_020) },
      },
      'host',
    ),
    ['docker.ports.b.port_range ranges_overlap'],
  )
})

test('a tcp and a udp port may have one number, and each other request for it is refused with its remedy', () => {
  const udp = (same_number_as: string) => ({ protocol: 'udp' as const, same_number_as })
  const tcp = (same_number_as: string) => ({ protocol: 'tcp_tls' as const, same_number_as })
  const game = { protocol: 'tcp' as const }
  assert.deepStrictEqual(wrongs({ game, voice: udp('game'), query: { protocol: 'udp' }, list: tcp('query') }), [])
  const cases: [Ports, string, string, RegExp][] = [
    [{ game, web: {}, voice: udp('gone') }, 'voice', 'not_found', /Name game\.$/],
    [{ web: {}, voice: udp('gone') }, 'voice', 'not_found', /no other tcp, tcp_tls or udp port\.$/],
    [{ voice: udp('voice') }, 'voice', 'conflicts', /both use udp/],
    [{ game, more: tcp('game') }, 'more', 'conflicts', /both use tcp/],
    [{ web: {}, voice: udp('web') }, 'voice', 'not_allowed', /web is https/],
    [{ game, web: { protocol: 'http', same_number_as: 'game' } }, 'web', 'not_allowed', /web is http/],
    [{ game, one: udp('game'), two: udp('game') }, 'two', 'conflicts', /one has the number of game already/],
    [{ game, one: udp('game'), two: tcp('one') }, 'two', 'conflicts', /Leave same_number_as out of one/],
  ]
  for (const [ports, name, reason, message] of cases) {
    const errors = checkPorts({ ports }, null, ['docker'])
    const found = errors.map((error) => [error.path.join('.'), error.reason])
    assert.deepStrictEqual(found, [[`docker.ports.${name}.same_number_as`, reason]])
    assert.match(errors[0]!.message, message)
  }
  const many = { protocol: 'tcp' as const, ...range(27_000, 27_010) }
  assert.deepStrictEqual(wrongs({ many, voice: udp('many') }, 'host'), [
    'docker.ports.voice.same_number_as not_allowed',
  ])
})

test('lobbies of a Swarm have no network of the machine, no range and no player addresses, and each refusal says what to do', () => {
  const rules = { host_ranges: [{ min: 27_000, max: 27_999 }], has_certificates: true, is_swarm: true }
  const refusals: [Parameters<typeof checkPorts>[0], string, string, RegExp][] = [
    [{ network_mode: 'host' }, 'network_mode', 'host_networking_disabled', /Docker Swarm.*Leave both out/],
    [{ player_addresses: true }, 'player_addresses', 'not_supported', /Docker Swarm.*Leave player_addresses out/],
    // Not "needs network mode host", which would be refused next.
    [
      { ports: { many: { protocol: 'udp', ...range(27_000, 27_010) } } },
      'ports.many.port_range',
      'not_supported',
      /Docker Swarm.*Give each port a name of its own/,
    ],
  ]
  for (const [docker, path, reason, message] of refusals) {
    const errors = checkPorts(docker, rules, ['docker'])
    assert.deepStrictEqual(
      errors.map((error) => [error.path.join('.'), error.reason]),
      [[`docker.${path}`, reason]],
    )
    assert.match(errors[0]!.message, message)
  }
  assert.deepStrictEqual(checkPorts({ ports: { game: { protocol: 'udp' } }, network_mode: 'bridge' }, rules, []), [])
})

test('where the edge has no certificate to show, a port cannot be tcp_tls', () => {
  const ports: Ports = { raw: { protocol: 'tcp_tls' }, plain: { protocol: 'tcp' }, web: { protocol: 'https' } }
  const errors = checkPorts({ ports }, { host_ranges: [], has_certificates: false, is_swarm: false }, ['docker'])
  assert.deepStrictEqual(
    errors.map(({ path, reason }) => [path, reason]),
    [[['docker', 'ports', 'raw', 'protocol'], 'tls_disabled']],
  )
})
