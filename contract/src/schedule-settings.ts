// What a person sets of a schedule, without schemas, for pages too.
import type { Schedule } from './cloud/schedules.ts'

/** The members of a schedule that a person sets: the body that puts it again. */
export function scheduleSettings({
  schedule_id: _id,
  create_ts: _create,
  next: _next,
  active_run: _active,
  last_run: _last,
  ...settings
}: Schedule) {
  return settings
}
