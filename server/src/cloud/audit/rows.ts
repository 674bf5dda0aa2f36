// The rows of the audit log, as the list and the CSV file read them.
import type { Context } from '../../context.ts'

/** `group_id`: null for the events of no group. Milliseconds, the start inclusive and the end exclusive. */
export type AuditWindow = { group_id: string | null; query_start: number; query_end: number }

/** The columns of an event, with the name that its user has now. */
export function selectEvents(ctx: Context, group_id: string | null) {
  return ctx.db
    .selectFrom('audit_events as event')
    .leftJoin('users', 'users.user_id', 'event.user_id')
    .selectAll('event')
    .select((of) => of.fn.coalesce('event.actor_name', 'users.display_name').as('name'))
    .where('group_id', group_id === null ? 'is' : '=', group_id)
}

export type EventRow = Awaited<ReturnType<ReturnType<typeof selectEvents>['execute']>>[number]
