// What a status page shows. The api role writes it into status_pages; the edge renders it, also while the database is away.

export type StatusState = 'operational' | 'degraded' | 'outage' | 'unknown'

/** Days of the bars. */
export const STATUS_DAYS = 90

/** Minutes of a day that were measured, and the bad ones of them. */
export type StatusDay = readonly [measured_count: number, bad_count: number]

/** A row of bars. `region`: empty: finding a game, over all regions. */
export type StatusPart = {
  region: string
  name: string
  state: StatusState
  /** Oldest first. The last one is the day of the view. */
  days: readonly StatusDay[]
  /** Null: of finding a game. */
  player_count: number | null
  /** Median of the last hour: of a find that got a seat; of the start of a server in the region. Null: there was none. */
  median_ms: number | null
}

export type ShownIncident = {
  incident_id: string
  title: string
  state: string
  impact: 'none' | 'minor' | 'major'
  create_ts: string
  update_ts: string
  resolve_ts: string | null
  /** Newest first. */
  updates: readonly { update_id: string; state: string; text: string; create_ts: string }[]
}

/** Times are RFC 3339 in UTC. */
export type StatusView = {
  page_id: string
  title: string
  text: string
  state: StatusState
  /** When it was written. */
  view_ts: string
  /** End of the last minute that was measured; null: none yet. */
  measured_ts: string | null
  /** The last day of the bars. */
  day: string
  player_count: number
  parts: readonly StatusPart[]
  /** Newest first, open ones before all others. */
  incidents: readonly ShownIncident[]
}
