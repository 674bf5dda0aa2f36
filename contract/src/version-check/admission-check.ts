// Whether the ports of a server fit who checks its seats.
import { waysOf } from '../admission-config.ts'
import type { ErrorDetail } from '../errors.ts'
import { PORT_PROTOCOL_DEFAULT, type VersionConfig } from '../version-config.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
const PORT_MEMBERS = ['admit_by', 'token_name', 'keep_token', 'several_connections'] as const
const DOCKER_MEMBERS = ['hold_ms', 'player_addresses'] as const

/** `path` is the docker block's. */
export function checkAdmission(docker: Docker, path: readonly string[]): ErrorDetail[] {
  const is_edge = docker.seats === 'edge'
  const errors: ErrorDetail[] = DOCKER_MEMBERS.filter((name) => !is_edge && docker[name] !== undefined).map((name) =>
    needsEdge([...path, name], name),
  )
  for (const [port_name, port] of Object.entries(docker.ports ?? {})) {
    const at = [...path, 'ports', port_name]
    for (const name of PORT_MEMBERS)
      if (!is_edge && port[name] !== undefined) errors.push(needsEdge([...at, name], name))
    if (!is_edge) continue
    if (port.port_range !== undefined) {
      const message = `No proxy is in front of the range ${port_name}, so the platform cannot check seats there. Give it a port of its own, or set seats to sdk.`
      errors.push({ path: [...at, 'port_range'], reason: 'conflicts', message })
    }
    const protocol = port.protocol ?? PORT_PROTOCOL_DEFAULT
    const { all } = waysOf(protocol)
    if (port.several_connections !== undefined && protocol === 'udp') {
      const message = `UDP has no connections. Leave several_connections out of the port ${port_name}.`
      errors.push({ path: [...at, 'several_connections'], reason: 'not_allowed', message })
    }
    const wrong = port.admit_by?.find((way) => !all.includes(way))
    const is_http = protocol === 'http' || protocol === 'https'
    if (wrong === undefined && !is_http && port.admit_by !== undefined && port.admit_by.length > 1) {
      const message = `A port of protocol ${protocol} admits players in one way. Choose ${all.join(' or ')}.`
      errors.push({ path: [...at, 'admit_by'], reason: 'too_many', message })
    }
    if (wrong === undefined) continue
    const message = `A port of protocol ${protocol} cannot admit players by ${wrong}. It can by ${all.join(', ')}.`
    errors.push({ path: [...at, 'admit_by'], reason: 'not_allowed', message })
  }
  return errors
}

function needsEdge(path: string[], name: string): ErrorDetail {
  const message = `${name} applies only where the platform checks the seats. Set seats to edge, or leave it out.`
  return { path, reason: 'needs_edge_seats', message }
}
