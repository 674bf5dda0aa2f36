// Whether a docker block fits the protocol that its server speaks.
import type { ErrorDetail } from '../errors.ts'
import { FILES_MAX } from '../files-config.ts'
import type { ProtocolName } from '../protocol-config.ts'
import type { VersionConfig } from '../version-config.ts'
import type { PlatformRules } from './platform-rules.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

/** Files that the server starts with for its protocol. */
const FILES: Record<ProtocolName, number> = { agones: 0, multiplay: 1, gsdk: 1, gamelift: 0 }

/** `path` is the docker block's. `rules`: null: the platform is not known. */
export function checkProtocol(
  docker: Docker,
  rules: Pick<PlatformRules, 'is_swarm'> | null,
  path: readonly string[],
): ErrorDetail[] {
  const { protocol, protocol_options: options } = docker
  if (protocol === undefined) return withoutProtocol(docker, path)
  const errors: ErrorDetail[] = []
  if (docker.network_mode === 'host') {
    const message = `A server that speaks ${protocol} finds the platform on its own loopback interface. Leave network_mode out.`
    errors.push({ path: [...path, 'network_mode'], reason: 'conflicts', message })
  }
  if (rules?.is_swarm === true) {
    const message = `The lobbies of this platform run in a Swarm, where a server does not find the platform on its loopback interface. Leave protocol out and call the platform, or use seats: edge.`
    errors.push({ path: [...path, 'protocol'], reason: 'not_available', message })
  }
  for (const name of ['counters', 'lists', 'room'] as const) {
    if (options?.[name] === undefined || protocol === 'agones') continue
    const message = `Only servers that speak agones have ${name}. Leave ${name} out.`
    errors.push({ path: [...path, 'protocol_options', name], reason: 'not_allowed', message })
  }
  if (options?.metadata !== undefined && protocol !== 'gsdk' && protocol !== 'multiplay') {
    const message = `Servers that speak ${protocol} receive no metadata. Leave it out.`
    errors.push({ path: [...path, 'protocol_options', 'metadata'], reason: 'not_allowed', message })
  }
  const files_max = FILES_MAX - FILES[protocol]
  if (Object.keys(docker.files ?? {}).length > files_max) {
    const message = `A lobby starts with at most ${FILES_MAX} files, and ${protocol} needs one. Leave at most ${files_max}.`
    errors.push({ path: [...path, 'files'], reason: 'too_many', message })
  }
  return [...errors, ...unknownRoom(docker, path), ...overfull(docker, path)]
}

function unknownRoom({ protocol, protocol_options: options }: Docker, path: readonly string[]): ErrorDetail[] {
  const room = options?.room
  if (room === undefined || protocol !== 'agones') return []
  if (Object.hasOwn({ ...options?.counters, ...options?.lists }, room)) return []
  const message = `There is no counter or list ${room}. Declare it in counters or lists.`
  return [{ path: [...path, 'protocol_options', 'room'], reason: 'not_found', message }]
}

function withoutProtocol({ seats, ready, protocol_options }: Docker, path: readonly string[]): ErrorDetail[] {
  const needed = [
    ...(seats === 'protocol' ? ['seats'] : []),
    ...(ready === 'protocol' ? ['ready'] : []),
    ...(protocol_options === undefined ? [] : ['protocol_options']),
  ]
  return needed.map((name) => {
    const message = `${name} needs a protocol. Set protocol to the one that the server speaks, or leave ${name} out.`
    return { path: [...path, name], reason: 'needs_protocol', message }
  })
}

/** Counters and lists that begin above their capacity. */
function overfull({ protocol_options: options }: Docker, path: readonly string[]): ErrorDetail[] {
  const at = (kind: string, name: string): string[] => [...path, 'protocol_options', kind, name]
  const counters = Object.entries(options?.counters ?? {}).filter(
    ([, { count = 0, capacity = Number.POSITIVE_INFINITY }]) => count > capacity,
  )
  const lists = Object.entries(options?.lists ?? {}).filter(
    ([, { values = [], capacity = Number.POSITIVE_INFINITY }]) => values.length > capacity,
  )
  return [
    ...counters.map(([name]): ErrorDetail => {
      const message = `The counter ${name} begins above its capacity. Raise the capacity, or begin lower.`
      return { path: at('counters', name), reason: 'too_large', message }
    }),
    ...lists.map(([name]): ErrorDetail => {
      const message = `The list ${name} begins with more values than its capacity. Raise the capacity, or begin with fewer.`
      return { path: at('lists', name), reason: 'too_many', message }
    }),
  ]
}
