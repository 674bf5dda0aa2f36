// The ports of a version config: what of it fits together, and what the operator of this platform allows.
import type { ErrorDetail } from '../errors.ts'
import { PORT_PROTOCOL_DEFAULT, type PortProtocol, type PortRange, type VersionConfig } from '../version-config.ts'
import type { PlatformRules } from './platform-rules.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Port = NonNullable<Docker['ports']>[string] & { protocol: PortProtocol }
type Wrong = (at: string[], reason: string, message: string) => ErrorDetail

type PortRules = Pick<PlatformRules, 'host_ranges' | 'has_certificates' | 'is_swarm'>

/** `rules`: null when the platform is unknown. `path` is the docker block's. */
export function checkPorts(
  docker: Pick<Docker, 'network_mode' | 'ports' | 'player_addresses'>,
  rules: PortRules | null,
  path: readonly string[],
): ErrorDetail[] {
  const wrong: Wrong = (at, reason, message) => ({ path: [...path, ...at], reason, message })
  const errors: ErrorDetail[] = []
  if (rules?.is_swarm === true && docker.network_mode === 'host') {
    const message =
      'Lobbies of this platform are tasks of a Docker Swarm, which have no network mode host and no port_range. Leave both out, and give each port a name of its own.'
    errors.push(wrong(['network_mode'], 'host_networking_disabled', message))
  }
  if (rules?.is_swarm === true && docker.player_addresses === true) {
    const message =
      'Lobbies of this platform are tasks of a Docker Swarm, whose servers see the address of their machine. Leave player_addresses out, and let the server read X-Player-Id or PROXY headers.'
    errors.push(wrong(['player_addresses'], 'not_supported', message))
  }
  if (docker.network_mode === 'host' && rules?.is_swarm !== true && rules?.host_ranges.length === 0) {
    const message = 'This platform has no ports for network mode host.'
    errors.push(wrong(['network_mode'], 'host_networking_disabled', message))
  }
  const entries = Object.entries(docker.ports ?? {}).map(([name, port]): [string, Port] => [
    name,
    { ...port, protocol: port.protocol ?? PORT_PROTOCOL_DEFAULT },
  ])
  for (const [name, port] of entries) {
    const at: Wrong = (rest, reason, message) => wrong(['ports', name, ...rest], reason, message)
    errors.push(...checkOptions(name, port, at))
    if (port.port !== undefined && port.port_range === undefined && docker.network_mode === 'host') {
      const message = `In network mode host all lobbies share the machine's ports, so ${name} cannot have port ${port.port} in each. Use a port_range, or network mode bridge.`
      errors.push(at(['port'], 'not_supported', message))
    }
    if (port.protocol === 'tcp_tls' && rules?.has_certificates === false) {
      const message = `This platform has no certificates, and ${name} cannot be tcp_tls without one; tcp can.`
      errors.push(at(['protocol'], 'tls_disabled', message))
    }
    if (port.port_range !== undefined) errors.push(...checkRange(name, port, port.port_range, docker, rules, at))
  }
  return [...errors, ...checkTogether(entries, wrong), ...checkSameNumbers(entries, wrong)]
}

function checkOptions(name: string, port: Port, wrong: Wrong): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  const { protocol, port_range } = port
  if (port.port !== undefined && port_range !== undefined) {
    const message = `${name} has a port and a port_range. Leave port out: the server takes a free number of the range.`
    errors.push(wrong(['port'], 'conflicts', message))
  }
  if (port_range === undefined && port.proxy === 'none') {
    errors.push(wrong(['proxy'], 'needs_game_guard', `Only a port_range has no proxy, and ${name} is a port.`))
  }
  if (port_range !== undefined && port.proxy === 'game_guard') {
    errors.push(wrong(['proxy'], 'not_allowed', `${name} is a port_range, which no proxy serves.`))
  }
  const is_raw = transportOf(port) === 'udp' || isTcp(port)
  if (port.proxy_protocol === true && (!is_raw || port_range !== undefined)) {
    const message = `The proxy sends the player's address by PROXY protocol on tcp, tcp_tls and udp ports of its own; ${name} is ${protocol}${port_range ? ', a range' : ''}.`
    errors.push(wrong(['proxy_protocol'], 'not_allowed', message))
  }
  if (port.require_player_token === true && (protocol !== 'udp' || port_range !== undefined)) {
    const message = `The proxy asks for player tokens on udp ports of its own; ${name} is ${protocol}${port_range ? ', a range' : ''}.`
    errors.push(wrong(['require_player_token'], 'not_allowed', message))
  }
  return errors
}

function checkRange(
  name: string,
  { protocol }: Port,
  { min, max }: PortRange,
  { network_mode }: Pick<Docker, 'network_mode'>,
  rules: PortRules | null,
  wrong: Wrong,
): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (rules?.is_swarm === true) {
    const message = `Lobbies of this platform are tasks of a Docker Swarm, which have no port_range: ${name}. Give each port a name of its own.`
    return [wrong(['port_range'], 'not_supported', message)]
  }
  if (protocol !== 'tcp' && protocol !== 'udp') {
    errors.push(wrong(['protocol'], 'not_allowed', `A range is of tcp or udp ports, and ${name} is ${protocol}.`))
  }
  if (network_mode !== 'host') {
    errors.push(wrong(['port_range'], 'needs_host_network', `A range needs network mode host: ${name}.`))
  }
  if (min > max) {
    errors.push(wrong(['port_range'], 'range_min_gt_max', `The range of ${name} ends before it begins.`))
  } else if (rules !== null && !rules.host_ranges.some((range) => range.min <= min && max <= range.max)) {
    const allowed = rules.host_ranges.map((range) => `${range.min}-${range.max}`).join(', ') || 'none'
    errors.push(wrong(['port_range'], 'port_out_of_range', `${min}-${max} is not within this platform's: ${allowed}.`))
  }
  return errors
}

/** Ranges and fixed numbers of one transport are apart. */
function checkTogether(entries: readonly (readonly [string, Port])[], wrong: Wrong): ErrorDetail[] {
  return entries.flatMap(([name, port], index): ErrorDetail[] => {
    const { port_range } = port
    const others = entries.slice(0, index).filter(([, other]) => transportOf(other) === transportOf(port))
    const twin = port.port === undefined ? undefined : others.find(([, other]) => other.port === port.port)
    if (twin !== undefined) {
      const message = `${twin[0]} has port ${port.port} already. Give ${name} another number.`
      return [wrong(['ports', name, 'port'], 'ports_overlap', message)]
    }
    const overlapped = others.find(([, { port_range: other }]) => {
      return port_range && other && other.min <= port_range.max && port_range.min <= other.max
    })
    if (overlapped === undefined) return []
    const message = `The ranges of ${overlapped[0]} and ${name} overlap.`
    return [wrong(['ports', name, 'port_range'], 'ranges_overlap', message)]
  })
}

/** A port and the one that it names have one public number: one of them by TCP, the other one by UDP. */
function checkSameNumbers(entries: readonly (readonly [string, Port])[], wrong: Wrong): ErrorDetail[] {
  const first_of = new Map<string, string>()
  return entries.flatMap(([name, port]): ErrorDetail[] => {
    const { same_number_as: target } = port
    if (target === undefined) return []
    const at = (reason: string, message: string): ErrorDetail[] => [
      wrong(['ports', name, 'same_number_as'], reason, message),
    ]
    const other = entries.find(([other_name]) => other_name === target)?.[1]
    const first = first_of.get(target)
    first_of.set(target, first ?? name)
    const raw_names = entries.filter(([raw, item]) => raw !== name && hasNumber(item)).map(([raw]) => raw)
    if (other === undefined) {
      const names =
        raw_names.length === 0 ? 'There is no other tcp, tcp_tls or udp port' : `Name ${raw_names.join(' or ')}`
      return at('not_found', `${name} has the number of ${target}, which is no port here. ${names}.`)
    }
    for (const [item, itself] of [
      [name, port],
      [target, other],
    ] as const) {
      if (hasNumber(itself)) continue
      const kind = itself.port_range === undefined ? itself.protocol : 'a range'
      return at(
        'not_allowed',
        `Only tcp, tcp_tls and udp ports have a number of the edge, and ${item} is ${kind}. Leave same_number_as out.`,
      )
    }
    if (transportOf(other) === transportOf(port)) {
      const message = `${name} and ${target} both use ${transportOf(port)}, so they cannot have one number. Give one of them the other protocol, or leave same_number_as out.`
      return at('conflicts', message)
    }
    if (other.same_number_as !== undefined) {
      const message = `${target} itself has the number of ${other.same_number_as}. Leave same_number_as out of ${target}.`
      return at('conflicts', message)
    }
    if (first === undefined) return []
    const message = `${first} has the number of ${target} already. Leave same_number_as out of ${first} or ${name}.`
    return at('conflicts', message)
  })
}

/** Whether it gets a number of the edge. */
function hasNumber(port: Port): boolean {
  return port.port_range === undefined && (isTcp(port) || port.protocol === 'udp')
}

function transportOf({ protocol }: Port): 'tcp' | 'udp' {
  return protocol === 'udp' ? 'udp' : 'tcp'
}

function isTcp({ protocol }: Port): boolean {
  return protocol === 'tcp' || protocol === 'tcp_tls'
}
