// Which targets get a notice. Pure.
import type { NoticeSettings } from '../../database/schema.ts'
import type { FoundNotice } from './notice.ts'

/** Group and game null: of the platform, which gets the notices of all groups and games. */
export type CollectedTarget = {
  target_id: string
  group_id: string | null
  game_id: string | null
  settings: NoticeSettings
  create_ts: Date
}

/** `members`: the groups of each person. */
export function isFor(
  { target_id, group_id, game_id, settings, create_ts }: CollectedTarget,
  found: FoundNotice,
  members: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  const { events, game_ids, namespace_ids } = settings
  if (!events.includes(found.event) || found.not_target_id === target_id) return false
  if ((found.since_ms ?? found.ts_ms) < create_ts.getTime()) return false
  if (game_id !== null && found.game_id !== game_id) return false
  if (group_id !== null && found.group_id !== group_id) {
    if (found.user_id === undefined || members.get(found.user_id)?.has(group_id) !== true) return false
  }
  if (game_ids !== undefined && found.game_id !== undefined && !game_ids.includes(found.game_id)) return false
  return namespace_ids === undefined || found.namespace_id === undefined || namespace_ids.includes(found.namespace_id)
}
