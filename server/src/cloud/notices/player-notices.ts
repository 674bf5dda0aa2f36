// First players after a quiet hour, and records of players, from the counts of the namespaces. Pure.
import type { FoundNotice, NoticePlace } from './notice.ts'

const QUIET_MS = 3_600_000
/** A record is noticed at most once in this time. */
const RECORD_PAUSE_MS = 3_600_000
/** Players of the smallest record. */
const RECORD_PLAYERS_MIN = 10
/** A state that only says that players are there is written again after this. */
const WRITE_MS = 60_000

/** `last_ms`: when there were players; 0: not known. `record`: the most at once. `record_ms`: when a record was noticed. */
export type PlayerState = { last_ms: number; record: number; record_ms: number }

export type PlayerChange = { found: FoundNotice[]; state: PlayerState | null }

/** `before`: of the pass before. `state`: null when there is nothing to write. */
export function comparePlayers(
  place: NoticePlace & { namespace_id: string },
  before: PlayerState,
  { now_ms, player_count }: { now_ms: number; player_count: number },
): PlayerChange {
  if (player_count === 0) return { found: [], state: null }
  const is_first = now_ms - before.last_ms >= QUIET_MS
  const is_record = player_count > before.record && player_count >= RECORD_PLAYERS_MIN
  const is_told = is_record && now_ms - before.record_ms >= RECORD_PAUSE_MS
  const people = player_count === 1 ? '1 player' : `${player_count} players`
  const common = { ...place, severity: 'info', ts_ms: now_ms } as const
  const found: FoundNotice[] = []
  if (is_first) {
    found.push({
      ...{ ...common, event: 'players_first', source: `players first ${place.namespace_id} ${now_ms}` },
      ...{ title: 'The first players after a quiet hour', text: `${people} now.` },
    })
  }
  if (is_told) {
    found.push({
      ...{ ...common, event: 'players_record', source: `players record ${place.namespace_id} ${player_count}` },
      ...{ title: `A new record: ${people}`, text: before.record === 0 ? '' : `Before: ${before.record}.` },
    })
  }
  const state = {
    last_ms: now_ms,
    record: Math.max(before.record, player_count),
    record_ms: is_told ? now_ms : before.record_ms,
  }
  const is_new = is_first || state.record > before.record || now_ms - before.last_ms >= WRITE_MS
  return { found, state: is_new ? state : null }
}
