// Development tokens: what one may say. The game then runs on the developer's own machine, at the host and the ports that
// the token names; matchmaker/calls/development.ts answers it.
import { isIP } from 'node:net'
import {
  type BodyOf,
  type createGameNamespaceTokenDevelopment,
  type DevelopmentPort,
  DevelopmentPorts,
  type ErrorDetail,
  gameModesOf,
  HOSTNAME_LENGTH_MAX,
  type VersionConfig,
} from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import type { ChangeContext } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { issueToken } from '../tokens/tokens.ts'

const LIFETIME_MS = 365 * 24 * 60 * 60_000
/** Ports of a development token. */
const PORTS_MAX = 16
/** Largest port number. */
const PORT_MAX = 65_535
const HOST_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i
const PORT_NAME = /^(?=.{1,16}$)[a-z0-9]+(-[a-z0-9]+)*$/

type NamespaceKey = { game_id: string; namespace_id: string }
type Ports = Record<string, DevelopmentPort>

const checkShape = createShapeCheck(DevelopmentPorts)

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or VALIDATION_ERROR. */
export async function createDevelopmentToken(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, namespace_id }: NamespaceKey,
  body: BodyOf<typeof createGameNamespaceTokenDevelopment>,
): Promise<{ token: string }> {
  await requireGame(ctx, caller, game_id)
  const { name_id } = await requireNamespace(ctx, game_id, namespace_id)
  const { hostname, ports = {} } = body
  throwErrors([...checkHostname(hostname), ...checkPorts(ports, await bridgedPorts(ctx, namespace_id))])
  const claimed = Object.entries(ports).map(([name, { protocol, port, port_range }]) => ({
    name,
    protocol,
    port: port ?? null,
    port_range: port_range ?? null,
  }))
  const list = { kind: 'development', game_id, namespace_id } as const
  const subject = { kind: 'development', namespace_id, hostname, ports: claimed } as const
  return issueToken(ctx, caller, list, subject, { lifetime_ms: LIFETIME_MS, label: name_id })
}

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. Returns the errors that createDevelopmentToken would throw. */
export async function validateDevelopmentToken(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id }: NamespaceKey,
  draft: { hostname: string; ports?: unknown },
): Promise<ErrorDetail[]> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const errors = checkHostname(draft.hostname)
  const { ports = {} } = draft
  const shape = checkShape(ports).map((detail) => ({ ...detail, path: ['ports', ...detail.path] }))
  if (shape.length > 0) return [...errors, ...shape]
  return [...errors, ...checkPorts(ports as Ports, await bridgedPorts(ctx, namespace_id))]
}

function checkHostname(hostname: string): ErrorDetail[] {
  const path = ['hostname']
  if (hostname === '') return [{ path, reason: 'too_short', message: 'The hostname is empty.' }]
  if (hostname.length > HOSTNAME_LENGTH_MAX) {
    return [{ path, reason: 'too_long', message: `The hostname is longer than ${HOSTNAME_LENGTH_MAX} characters.` }]
  }
  const looks_numeric = /^[\d.]+$/.test(hostname)
  const is_name = !looks_numeric && hostname.split('.').every((label) => HOST_LABEL.test(label))
  if (is_name || isIP(hostname) !== 0) return []
  const message = 'The hostname must be a host name or an IP address, without scheme, port and path.'
  return [{ path, reason: 'invalid', message }]
}

/** Names of the ports that the namespace's version has, in no game mode with network mode host. */
async function bridgedPorts(ctx: Context, namespace_id: string): Promise<ReadonlySet<string>> {
  const row = await ctx.db
    .selectFrom('namespaces')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .select('versions.config')
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirst()
  const modes = [...gameModesOf((row?.config ?? {}) as VersionConfig).values()]
  const namesOf = (network_mode: 'bridge' | 'host') =>
    modes.filter((mode) => mode.network_mode === network_mode).flatMap((mode) => mode.ports.map((port) => port.name))
  return new Set(namesOf('bridge')).difference(new Set(namesOf('host')))
}

function checkPorts(ports: Ports, bridged: ReadonlySet<string>): ErrorDetail[] {
  const entries = Object.entries(ports)
  if (entries.length > PORTS_MAX) {
    return [{ path: ['ports'], reason: 'too_many', message: `There are more than ${PORTS_MAX} ports.` }]
  }
  const errors = entries.flatMap(([name, port]) => checkPort(name, port, bridged.has(name)))
  const taken = new Map<string, string>()
  for (const [name, { port, protocol }] of entries) {
    if (port === undefined) continue
    const other = taken.get(`${protocol} ${port}`)
    if (other === undefined) {
      taken.set(`${protocol} ${port}`, name)
      continue
    }
    const message = `The ports ${other} and ${name} are both ${protocol} ${port}.`
    errors.push({ path: ['ports', name, 'port'], reason: 'port_protocol_not_unique', message })
  }
  return errors
}

function checkPort(name: string, port: DevelopmentPort, is_bridged: boolean): ErrorDetail[] {
  const path = ['ports', name]
  const wrong = (at: string[], reason: string, message: string): ErrorDetail => ({
    path: [...path, ...at],
    reason,
    message,
  })
  const errors: ErrorDetail[] = []
  if (!PORT_NAME.test(name)) {
    errors.push(
      wrong([], 'invalid', `${JSON.stringify(name)} is not lower-case letters, digits and single dashes, 16 at most.`),
    )
  }
  const { port_range, protocol } = port
  if (port.port !== undefined && port_range !== undefined) {
    return [...errors, wrong([], 'duplicate_port_and_port_range', `${name} has a port and a port_range.`)]
  }
  if (port.port !== undefined) return [...errors, ...checkNumber(port.port, [...path, 'port'])]
  if (port_range === undefined) {
    return [...errors, wrong([], 'missing_port_and_port_range', `${name} has neither a port nor a port_range.`)]
  }
  const numbers = [
    ...checkNumber(port_range.min, [...path, 'port_range', 'min']),
    ...checkNumber(port_range.max, [...path, 'port_range', 'max']),
  ]
  errors.push(...numbers)
  if (numbers.length === 0 && port_range.min > port_range.max) {
    errors.push(wrong(['port_range'], 'range_min_gt_max', `The range of ${name} ends before it begins.`))
  }
  if (protocol !== 'tcp' && protocol !== 'udp') {
    errors.push(wrong(['protocol'], 'not_allowed', `A range is of tcp or udp ports, and ${name} is ${protocol}.`))
  }
  if (is_bridged) {
    const message = `A range needs network mode host, and ${name} is a port of the version in mode bridge.`
    errors.push(wrong(['port_range'], 'needs_host_network', message))
  }
  return errors
}

function checkNumber(port: number, path: string[]): ErrorDetail[] {
  if (port < 1) return [{ path, reason: 'too_low', message: 'Ports begin at 1.' }]
  return port > PORT_MAX ? [{ path, reason: 'too_high', message: `Ports end at ${PORT_MAX}.` }] : []
}
