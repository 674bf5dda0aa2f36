// Which lobbies the live table shows, and in which order. A list in the order of the last time is nearly sorted, so sorting
// it again is quick.
import type { LiveLobby } from './live-lobbies.ts'

export const LOBBY_STATES = ['starting', 'ready', 'idle', 'closed', 'stalled', 'outdated'] as const
export type LobbyState = (typeof LOBBY_STATES)[number]

/** What the state of a lobby follows from. */
export type LobbyFlags = Pick<LiveLobby, 'is_ready' | 'is_idle' | 'is_closed' | 'is_stalled' | 'is_outdated'>

/** The one state that matters most. A lobby may be outdated besides. */
export function stateOf(lobby: LobbyFlags): Exclude<LobbyState, 'outdated'> {
  if (lobby.is_stalled) return 'stalled'
  if (!lobby.is_ready) return 'starting'
  if (lobby.is_closed) return 'closed'
  return lobby.is_idle ? 'idle' : 'ready'
}

export type LiveLobbyFilter = { state: string; mode: string; region: string; text: string }

function passes(lobby: LiveLobby, { state, mode, region, text }: LiveLobbyFilter): boolean {
  if (state !== '' && (state === 'outdated' ? !lobby.is_outdated : stateOf(lobby) !== state)) return false
  if (mode !== '' && lobby.lobby_group_name_id !== mode) return false
  if (region !== '' && lobby.region_id !== region) return false
  return text === '' || lobby.lobby_id.includes(text) || lobby.lobby_group_name_id.includes(text)
}

/** What the lobby uses, as a share of its limit. Undefined before the first sample. */
export function useShare({ usage, limits }: LiveLobby, of: 'cpu_cores' | 'memory_bytes'): number | undefined {
  return usage === undefined ? undefined : usage[of] / limits[of]
}

export const SORTS: Readonly<Record<string, (lobby: LiveLobby) => string | number>> = {
  lobby: (lobby) => lobby.lobby_id,
  state: (lobby) => LOBBY_STATES.indexOf(stateOf(lobby)),
  players: (lobby) => lobby.total_player_count,
  mode: (lobby) => lobby.lobby_group_name_id,
  version: (lobby) => lobby.version_id,
  region: (lobby) => lobby.region_id,
  cpu: (lobby) => useShare(lobby, 'cpu_cores') ?? -1,
  memory: (lobby) => useShare(lobby, 'memory_bytes') ?? -1,
  age: (lobby) => -Date.parse(lobby.create_ts),
}

/** The lobbies that pass, sorted; those with the same value, oldest first. `before`: the ids of the last time, in their order. */
export function arrange(
  lobbies: ReadonlyMap<string, LiveLobby>,
  filter: LiveLobbyFilter,
  sort: { column: string; is_down: boolean },
  before: readonly string[],
): LiveLobby[] {
  const keyOf = SORTS[sort.column] ?? SORTS.age!
  const sign = sort.is_down ? -1 : 1
  const known = new Set(before)
  const rows: { lobby: LiveLobby; key: string | number }[] = []
  function add(lobby: LiveLobby | undefined): void {
    if (lobby !== undefined && passes(lobby, filter)) rows.push({ lobby, key: keyOf(lobby) })
  }
  for (const lobby_id of before) add(lobbies.get(lobby_id))
  for (const lobby of lobbies.values()) if (!known.has(lobby.lobby_id)) add(lobby)
  rows.sort((a, b) => {
    if (a.key !== b.key) return a.key < b.key ? -sign : sign
    return a.lobby.lobby_id < b.lobby.lobby_id ? -1 : 1
  })
  return rows.map(({ lobby }) => lobby)
}

export type Totals = Record<LobbyState, number> & { lobbies: number; reserved: number; connected: number }

export function totalsOf(lobbies: Iterable<LiveLobby>): Totals {
  const totals: Totals = {
    ...{ lobbies: 0, reserved: 0, connected: 0 },
    ...{ starting: 0, ready: 0, idle: 0, closed: 0, stalled: 0, outdated: 0 },
  }
  for (const lobby of lobbies) {
    totals.lobbies++
    totals.connected += lobby.registered_player_count
    totals.reserved += lobby.total_player_count - lobby.registered_player_count
    totals[stateOf(lobby)]++
    if (lobby.is_outdated) totals.outdated++
  }
  return totals
}
