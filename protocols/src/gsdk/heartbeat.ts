// Heartbeats as the GSDKs write them, and the responses that all of them can read.
import { asRecord, type JsonRecord, RequestError } from '../http-body.ts'
import type { LobbyFacts, LobbySeat, LobbyView } from '../lobby.ts'

/** In the order in which a server passes through them. It never goes back. */
export const GSDK_STATES = ['Initializing', 'StandingBy', 'Active', 'Terminating', 'Terminated'] as const
export type GsdkState = (typeof GSDK_STATES)[number]

/** C++ takes no shorter interval, and Java ends the process when the member is missing. */
const INTERVAL_MS = 1_000
const PLAYER_ID_LENGTH_MAX = 2048

/** `player_ids`: null when the server does not report its players. */
export type Heartbeat = { state: GsdkState; is_healthy: boolean; player_ids: string[] | null }

type SessionConfig = {
  /** A GUID, or C# cannot read the response. */
  sessionId: string
  sessionCookie: string
  initialPlayers: string[]
  metadata: Record<string, string>
}

export type HeartbeatResponse = {
  operation: 'Continue' | 'Active' | 'Terminate'
  nextHeartbeatIntervalMs: number
  sessionConfig?: SessionConfig
  nextScheduledMaintenanceUtc?: string
  maintenanceSchedule?: object
}

/** Throws a RequestError that names the member. Names begin with a capital letter or, from Java, with a small one. */
export function parseHeartbeat(body: unknown): Heartbeat {
  const record = asRecord(body)
  if (record === null) throw new RequestError(400, 'The body of a heartbeat is a JSON object.')
  const state = GSDK_STATES.find((one) => one === member(record, 'CurrentGameState'))
  if (state === undefined) throw new RequestError(400, `CurrentGameState is one of: ${GSDK_STATES.join(', ')}.`)
  return {
    state,
    // Unity sends an empty text while it is healthy.
    is_healthy: member(record, 'CurrentGameHealth') !== 'Unhealthy',
    player_ids: playerIds(member(record, 'CurrentPlayers')),
  }
}

function member(record: JsonRecord, name: string): unknown {
  return record[name] ?? record[`${name.charAt(0).toLowerCase()}${name.slice(1)}`]
}

function playerIds(players: unknown): string[] | null {
  if (players === undefined || players === null) return null
  if (!Array.isArray(players)) throw new RequestError(400, 'CurrentPlayers is a list of {"PlayerId"}.')
  const ids = players.map((player) => {
    const record = asRecord(player)
    const id = record === null ? undefined : member(record, 'PlayerId')
    if (typeof id !== 'string' || id.length > PLAYER_ID_LENGTH_MAX) {
      throw new RequestError(400, `CurrentPlayers[].PlayerId is a text of at most ${PLAYER_ID_LENGTH_MAX} characters.`)
    }
    return id
  })
  return [...new Set(ids.filter((id) => id !== ''))].sort()
}

/**
 * The response to a server in this state. `Active` is said only to a server that still stands by: Unity fails when it
 * comes again. `Terminate` comes when a lobby that ends has no seats. `drain_ts`: since when the lobby drains.
 */
export function respond(
  state: GsdkState,
  facts: LobbyFacts,
  view: LobbyView,
  drain_ts: number | null,
): HeartbeatResponse {
  const maintenance = drain_ts === null ? {} : maintenanceOf(facts, drain_ts)
  const response = { operation: 'Continue', nextHeartbeatIntervalMs: INTERVAL_MS, ...maintenance } as const
  if (state === 'Terminating' || state === 'Terminated') return response
  if (view.is_draining && view.seats.length === 0) return { ...response, operation: 'Terminate' }
  const players = view.seats.filter(({ role }) => role !== 'spectator')
  if (state !== 'StandingBy' || players.length === 0) return response
  return { ...response, operation: 'Active', sessionConfig: sessionConfig(facts, players) }
}

function sessionConfig({ lobby_id, config, tags }: LobbyFacts, players: readonly LobbySeat[]): SessionConfig {
  return {
    sessionId: lobby_id,
    sessionCookie: config === null ? '' : JSON.stringify(config),
    initialPlayers: players.map(({ player_id }) => player_id),
    metadata: { ...tags },
  }
}

/** The hint that the lobby is going to end. SDKs read the member names as written here, also the capital letters. */
function maintenanceOf({ lobby_id }: LobbyFacts, drain_ts: number) {
  const notBefore = new Date(drain_ts).toISOString()
  const event = {
    eventId: lobby_id,
    eventType: 'Terminate',
    resourceType: 'VirtualMachine',
    Resources: [lobby_id],
    eventStatus: 'Scheduled',
    notBefore,
    description: 'The lobby is going to end.',
    eventSource: 'Platform',
    durationInSeconds: -1,
  }
  return {
    nextScheduledMaintenanceUtc: notBefore,
    maintenanceSchedule: { documentIncarnation: '1', Events: [event] },
  }
}
