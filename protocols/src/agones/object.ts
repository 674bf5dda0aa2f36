// The GameServer object that the server reads and watches.
import { isIP } from 'node:net'
import { create, type Message } from '@bufbuild/protobuf'
import type { LobbyFacts } from '../lobby.ts'
import type { Counter, List } from './counts.ts'
import { GAME_SERVER } from './descriptors.ts'
import type { HealthRules } from './health.ts'
import type { Entries } from './metadata.ts'
import type { State } from './states.ts'

export type Players = { ids: readonly string[]; capacity: bigint }

export type ObjectParts = {
  state: State
  /** How many times the object has changed. */
  version: number
  labels: Entries
  annotations: Entries
  counters: ReadonlyMap<string, Counter>
  lists: ReadonlyMap<string, List>
  /** null: player tracking is not in use. */
  players: Players | null
  is_draining: boolean
}

export function createObject(facts: LobbyFacts, rules: HealthRules, parts: ObjectParts): Message {
  return create(GAME_SERVER, {
    objectMeta: {
      name: `lobby-${facts.lobby_id}`,
      namespace: facts.namespace_id,
      uid: facts.lobby_id,
      resourceVersion: String(parts.version),
      generation: 1n,
      creationTimestamp: BigInt(Math.floor(facts.start_ts / 1000)),
      labels: { ...parts.labels, ...factLabels(facts, parts.is_draining) },
      annotations: { ...parts.annotations, ...factAnnotations(facts) },
    },
    spec: {
      health: {
        periodSeconds: Math.ceil(rules.period_ms / 1000),
        failureThreshold: rules.failure_threshold,
        initialDelaySeconds: Math.ceil(rules.initial_delay_ms / 1000),
      },
    },
    status: {
      state: parts.state,
      ...addressOf(facts),
      counters: Object.fromEntries(parts.counters),
      lists: Object.fromEntries(
        [...parts.lists].map(([name, { capacity, values }]) => [
          name,
          { capacity: BigInt(capacity), values: [...values] },
        ]),
      ),
      ...(parts.players !== null && {
        players: {
          count: BigInt(parts.players.ids.length),
          capacity: parts.players.capacity,
          ids: [...parts.players.ids],
        },
      }),
    },
  } as Record<string, unknown>)
}

/** The list whose values are the players in the game. */
export const PLAYERS_LIST = 'players'

/** What lists of lobbies show: all that the server can change itself. Players may be listed by their tokens, which no other player may see. */
export function stateOf({ labels, annotations, counters, lists }: ObjectParts) {
  return {
    labels,
    annotations,
    // Numbers, so that readers can compare them. Beyond 2^53 they lose their last digits.
    counters: Object.fromEntries(
      [...counters].map(([name, { count, capacity }]) => [name, { count: Number(count), capacity: Number(capacity) }]),
    ),
    lists: Object.fromEntries([...lists].filter(([name]) => name !== PLAYERS_LIST)),
  }
}

function factLabels(facts: LobbyFacts, is_draining: boolean): Record<string, string> {
  return {
    'muster.dev/lobby-id': facts.lobby_id,
    'muster.dev/game-mode': facts.game_mode,
    'muster.dev/region': facts.region_id,
    ...(is_draining && { 'muster.dev/draining': 'true' }),
  }
}

function factAnnotations(facts: LobbyFacts): Record<string, string> {
  return { 'muster.dev/tags': JSON.stringify(facts.tags), 'muster.dev/config': JSON.stringify(facts.config) ?? 'null' }
}

/** How players reach the server. A range of ports has no number and is left out. */
function addressOf({ ports }: LobbyFacts) {
  const address = ports[0]?.public.hostname ?? ''
  const type = isIP(address) === 0 ? 'ExternalDNS' : 'ExternalIP'
  return {
    address,
    addresses: address === '' ? [] : [{ type, address }],
    ports: ports.flatMap((port) => {
      const number = port.public.port ?? port.listening
      return number === null ? [] : [{ name: port.name, port: number }]
    }),
  }
}
