// An allocation of Agones as one of this platform: a new lobby with seats. Labels of the selector name the game mode and the
// region. The server reads the labels and annotations of the request, and its counters and lists begin changed.

import { isIP } from 'node:net'
import type { allocateLobby, BodyOf, ResponseOf } from '@musterhost/contract'
import { CallError } from '../call-error.ts'
import type { StartChange } from '../counts.ts'
import type { AllocationRequest } from './messages.ts'

const ALLOCATED = 1
const FLEET_LABEL = 'agones.dev/fleet'
const MODE_LABEL = 'muster.dev/game-mode'
const REGION_LABELS = ['muster.dev/region', 'topology.kubernetes.io/region']
/** How many seats are taken. Absent: one, and the lobby stays without players. */
const PLAYERS_ANNOTATION = 'muster.dev/players'
/** In the response: a JSON list of the player tokens. */
const TOKENS_ANNOTATION = 'muster.dev/player-tokens'
const PLAYERS_MAX = 256
/** How long a lobby stays whose players the platform does not know: as long as it keeps any. */
const KEEP_MS = 24 * 3_600_000
/** Namespaces that a request may leave out. */
const NO_NAMESPACE = ['', 'default']

type Body = BodyOf<typeof allocateLobby>
type Answer = ResponseOf<typeof allocateLobby>

type Entries = Record<string, string>

/** `namespace` null: the request names none. `body`: without the namespace. */
export type Asked = {
  namespace: string | null
  labels: Entries
  annotations: Entries
  body: Omit<Body, 'namespace_id'>
}

/** `game_mode`: for a request without a fleet. Throws a CallError. */
export function askedBy(request: AllocationRequest, game_mode: string): Asked {
  const labels = labelsOf(request)
  const { labels: own_labels = {}, annotations = {} } = request.metadata ?? request.metaPatch ?? {}
  const region = REGION_LABELS.map((name) => labels[name]).find((value) => value !== undefined)
  const counted = countOf(annotations[PLAYERS_ANNOTATION])
  const known = new Set([FLEET_LABEL, MODE_LABEL, ...REGION_LABELS])
  const matched = Object.fromEntries(Object.entries(labels).filter(([name]) => !known.has(name)))
  const metadata = { labels: { ...matched, ...own_labels }, annotations }
  return {
    ...metadata,
    namespace: NO_NAMESPACE.includes(request.namespace) ? null : request.namespace,
    body: {
      game_mode: labels[FLEET_LABEL] ?? labels[MODE_LABEL] ?? game_mode,
      ...(region !== undefined && { region }),
      players: Array.from({ length: counted ?? 1 }, () => ({})),
      ...(counted === null && { keep_ms: KEEP_MS }),
      lobby_config: {
        agones: {
          ...metadata,
          counters: countersOf(request),
          lists: listsOf(request),
        },
      },
    },
  }
}

/** The labels of the first selector that a new server can match. Throws a CallError when each wants a running one. */
function labelsOf({
  gameServerSelectors,
  requiredGameServerSelector,
  preferredGameServerSelectors,
}: AllocationRequest): Record<string, string> {
  const older = [
    ...preferredGameServerSelectors.map(({ matchLabels, ...rest }) => ({
      ...rest,
      matchLabels: { ...requiredGameServerSelector?.matchLabels, ...matchLabels },
    })),
    ...(requiredGameServerSelector === undefined ? [] : [requiredGameServerSelector]),
  ]
  const selectors = gameServerSelectors.length > 0 ? gameServerSelectors : older
  if (selectors.length === 0) return {}
  const selector = selectors.find(({ gameServerState }) => gameServerState !== ALLOCATED)
  if (selector === undefined)
    throw new CallError(
      'RESOURCE_EXHAUSTED',
      'there is no available GameServer to allocate: each selector wants one that is allocated already; add one with gameServerState READY',
    )
  return selector.matchLabels
}

/** Null: the request does not say. */
function countOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > PLAYERS_MAX)
    throw new CallError(
      'INVALID_ARGUMENT',
      `metadata.annotations["${PLAYERS_ANNOTATION}"] is a number from 1 to ${PLAYERS_MAX}`,
    )
  return count
}

/** Numbers as decimal text: JSON has no 64-bit integers. */
function countersOf({ counters }: AllocationRequest): Record<string, StartChange> {
  return Object.fromEntries(
    Object.entries(counters).map(([name, { action, amount = 0n, capacity }]) => {
      if (action !== undefined && action !== 'Increment' && action !== 'Decrement')
        throw new CallError('INVALID_ARGUMENT', `counters["${name.slice(0, 64)}"].action is Increment or Decrement`)
      const change = action === 'Decrement' ? -amount : amount
      return [
        name,
        { ...(action && { amount: `${change}` }), ...(capacity !== undefined && { capacity: `${capacity}` }) },
      ]
    }),
  )
}

function listsOf({ lists }: AllocationRequest): Record<string, StartChange> {
  return Object.fromEntries(
    Object.entries(lists).map(([name, { addValues, deleteValues, capacity }]) => [
      name,
      { addValues, deleteValues, ...(capacity !== undefined && { capacity: `${capacity}` }) },
    ]),
  )
}

/** The members of an AllocationResponse. */
export function allocatedAs(
  { lobby, ports, players }: Answer,
  { labels, annotations, body }: Asked,
): Record<string, unknown> {
  const reached = Object.entries(ports)
  const address = reached[0]?.[1].hostname ?? ''
  return {
    gameServerName: `lobby-${lobby.lobby_id}`,
    ports: reached.flatMap(([name, { port }]) => (port === undefined ? [] : [{ name, port }])),
    address,
    addresses: address === '' ? [] : [{ type: isIP(address) === 0 ? 'ExternalDNS' : 'ExternalIP', address }],
    nodeName: lobby.region.region_id,
    source: 'local',
    metadata: {
      labels: {
        ...labels,
        [FLEET_LABEL]: body.game_mode,
        [MODE_LABEL]: body.game_mode,
        'muster.dev/lobby-id': lobby.lobby_id,
        'muster.dev/region': lobby.region.region_id,
      },
      annotations: { ...annotations, [TOKENS_ANNOTATION]: JSON.stringify(players.map(({ token }) => token)) },
    },
  }
}
