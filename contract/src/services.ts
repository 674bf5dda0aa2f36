// Which role serves a path of the main domain. The edge routes by this table, which is derived from the operations.
import type { Operation, Service } from './operation.ts'
import { OPERATIONS } from './operations.ts'

/** One segment of the operations' paths. `{game_id}` and every other parameter is the same segment, PARAMETER. */
type Segment = { service: Service | null; below: Map<string, Segment> }

const PARAMETER = '{}'
const END = '(?=[?]|$)'

/** Operations of the api among those of the matchmaker. All unknown paths beside them are the matchmaker's. */
const AMONG_MATCHMAKER: ReadonlySet<string> = new Set(['lobbies.result'])

const MATCHMAKER_PATH = new RegExp(
  `^${alternatives(segmentsOf(OPERATIONS.filter(({ id }) => !AMONG_MATCHMAKER.has(id))), 'matchmaker')}`,
)
const API_PATH = new RegExp(
  `^(?:${exactPaths(OPERATIONS.filter(({ id }) => AMONG_MATCHMAKER.has(id))).join('|')})${END}`,
)

/**
 * The role that serves `path`, which may be followed by a query. Below a prefix whose operations are all served by one
 * role, such as `/parties`, every path is routed to this role. The api receives all other unknown paths.
 */
export function serviceOf(path: string): Service {
  return MATCHMAKER_PATH.test(path) && !API_PATH.test(path) ? 'matchmaker' : 'api'
}

function exactPaths(operations: readonly Operation[]): string[] {
  return operations.flatMap(({ path, aliases }) => [path, ...aliases])
}

function segmentsOf(operations: readonly Operation[]): Segment {
  const root: Segment = { service: null, below: new Map() }
  for (const { id, service, path, aliases } of operations) {
    for (const address of [path, ...aliases]) {
      let segment = root
      for (const name of address.slice(1).split('/')) {
        const key = name.startsWith('{') ? PARAMETER : name
        const next: Segment = segment.below.get(key) ?? { service: null, below: new Map() }
        segment.below.set(key, next)
        segment = next
      }
      if (segment.service !== null && segment.service !== service) {
        throw new Error(`${id} is served by the ${service}, another operation of ${address} is not.`)
      }
      segment.service = service
    }
  }
  return root
}

/** A regular expression for what follows `segment` in the paths that `service` serves. */
function alternatives(segment: Segment, service: Service): string {
  const found = [...segment.below].flatMap(([name, next]) => {
    const services = servicesOf(next)
    if (!services.has(service)) return []
    const rest = services.size === 1 ? '(?=[/?]|$)' : alternatives(next, service)
    return [`/${name === PARAMETER ? parameterBeside([...segment.below.keys()]) : name}${rest}`]
  })
  return `(?:${[...(segment.service === service ? [END] : []), ...found].join('|')})`
}

/** Any segment, except those that the same place spells out. */
function parameterBeside(names: readonly string[]): string {
  const literal = names.filter((name) => name !== PARAMETER)
  return literal.length === 0 ? '[^/?]+' : `(?!(?:${literal.join('|')})(?:[/?]|$))[^/?]+`
}

function servicesOf({ service, below }: Segment): Set<Service> {
  const own = service === null ? [] : [service]
  return new Set([...own, ...[...below.values()].flatMap((next) => [...servicesOf(next)])])
}
