// What bounds a swarm: the code of the refusal, what it limits, and what raises the limit.
import { ApiError } from '@musterhost/contract'

export type Limit = {
  /** Error code of the platform, or `CONNECTION` when the lobby's server could not be reached. */
  code: string
  message: string
  remedy: string
  /** Whether it limits calls per minute, and not players. */
  is_pace: boolean
}

const CONNECTION = 'CONNECTION'

const REMEDIES: Readonly<Record<string, string>> = {
  API_RATE_LIMIT:
    'Requests of one client a minute: MUSTER_RATE_LIMIT_SEATS. With a cloud token each bot has an address of its own.',
  MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE:
    'Players of one client: `max_players_per_client` of the namespace. With a cloud token each bot has an address of its own.',
  MATCHMAKER_REGION_FULL:
    'Cores and memory of the region: smaller tiers, or MUSTER_CAPACITY_CORES and another machine.',
  MATCHMAKER_TOO_MANY_LOBBIES: 'Lobbies of the namespace: `lobby_count_max` of the namespace.',
  MATCHMAKER_NO_PORTS: 'TCP and UDP ports of the edge: MUSTER_EDGE_PORTS.',
  MATCHMAKER_NO_AVAILABLE_LOBBIES: 'Room in open lobbies: `max_players` of the game mode, or its `idle_lobbies`.',
  MATCHMAKER_LOBBY_NOT_STARTED: 'How fast servers of lobbies start: see the logs of the lobby.',
  MATCHMAKER_LOBBY_STOPPED: 'Servers of lobbies that end: see the logs of the lobby.',
  CAPTCHA_CAPTCHA_REQUIRED: 'The version has a captcha, which bots cannot solve. With a cloud token none is asked for.',
  [CONNECTION]: "The lobby's server: see its logs, and the option --path.",
}
const REMEDY_DEFAULT = 'The page of the code explains it: /docs/errors.'

/** `retry_after_s`: null when the platform named no time. */
export function limitOf(error: unknown): Limit & { retry_after_s: number | null } {
  if (!(error instanceof ApiError)) {
    const message = error instanceof Error ? error.message : String(error)
    return { code: CONNECTION, message, remedy: REMEDIES[CONNECTION]!, is_pace: false, retry_after_s: null }
  }
  const { code, message, retry_after_s = null } = error
  const is_pace = code === 'API_RATE_LIMIT'
  return { code, message, remedy: REMEDIES[code] ?? REMEDY_DEFAULT, is_pace, retry_after_s }
}
