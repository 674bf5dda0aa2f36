// What schedules act on.
import type { ScheduleRules } from '../book/schedule-rules.ts'
import type { IdleLobbyKeeper } from '../idle-lobbies.ts'
import type { Books } from '../shards/books.ts'
import type { Namespaces } from '../watch/namespaces.ts'

export type ScheduleParts = {
  books: Books
  namespaces: Pick<Namespaces, 'gameModes'>
  idle_lobbies: Pick<IdleLobbyKeeper, 'raise'>
  /** What schedules say of each namespace now: new books read it. */
  rules: Map<string, ScheduleRules>
}
