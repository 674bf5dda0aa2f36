// Reading the audit log: by the owners and developers of a group that of their group, by administrators also the events that
// belong to no group. Viewers do not read it: it has the addresses of other members.
import {
  AUDIT_LIMIT_DEFAULT,
  type AuditEvent,
  type listAuditEvents,
  type listGroupAuditEvents,
  type QueryOf,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { canonicalAddress } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGroup } from '../access.ts'
import { auditUrl } from '../export-urls.ts'
import { cut } from '../lists.ts'
import { instantOf, timestamp } from '../times.ts'
import { type AuditWindow, type EventRow, selectEvents } from './rows.ts'

/** Address of events that the platform caused without a request. */
const PLATFORM_ADDRESS = '-'

type Filters = Omit<QueryOf<typeof listAuditEvents>, 'group_id'>

/** Throws GROUP_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function listGroupEvents(
  ctx: Context,
  caller: Caller,
  group_id: string,
  filters: QueryOf<typeof listGroupAuditEvents>,
): Promise<ResponseOf<typeof listGroupAuditEvents>> {
  await requireGroup(ctx, caller, group_id)
  return listEvents(ctx, group_id, filters)
}

/** For administrators, who may read every group's. A group that was deleted still has its events. */
export async function listEvents(
  ctx: Context,
  group_id: string | null,
  filters: Filters,
): Promise<ResponseOf<typeof listAuditEvents>> {
  const { limit = AUDIT_LIMIT_DEFAULT } = filters
  const rows = await eventsQuery(ctx, group_id, filters).execute()
  const { rows: events, is_cut } = cut(rows, limit)
  return { events: events.map(toEvent), is_cut }
}

/** The events of a list, and one more when there are more. Throws VALIDATION_ERROR for what is no address. */
export function eventsQuery(ctx: Context, group_id: string | null, filters: Filters) {
  const { limit = AUDIT_LIMIT_DEFAULT } = filters
  const conditions = conditionsOf(filters)
  return selectEvents(ctx, group_id)
    .where(({ and }) => and(conditions))
    .orderBy('event_id', 'desc')
    .limit(limit + 1)
}

/** Throws GROUP_NOT_FOUND, GROUP_INSUFFICIENT_PERMISSIONS, or VALIDATION_ERROR when the window ends before it begins. */
export async function exportGroupEvents(
  ctx: Context,
  caller: Caller,
  window: AuditWindow & { group_id: string },
): Promise<{ url: string }> {
  await requireGroup(ctx, caller, window.group_id)
  return exportEvents(ctx, window)
}

/** For administrators. */
export function exportEvents(ctx: Context, window: AuditWindow): { url: string } {
  if (window.query_end < window.query_start) {
    const message = 'query_end must not be before query_start.'
    throw validationError([{ path: ['query_end'], reason: 'too_low', message }])
  }
  return { url: auditUrl(ctx, window) }
}

function conditionsOf(filters: Filters): RawBuilder<SqlBool>[] {
  const { query_start, query_end, actor_id, before_event_id, client_ip, ...same_filters } = filters
  const { game_id, namespace_id, operation, outcome, code, ray_id } = same_filters
  const same = { game_id, namespace_id, operation, outcome, code, ray_id, client_ip: storedAddress(client_ip) }
  const conditions = Object.entries(same).flatMap(([name, value]) =>
    value === undefined ? [] : [sql<SqlBool>`${sql.ref(`event.${name}`)} = ${value}`],
  )
  if (query_start !== undefined) conditions.push(sql`event.create_ts >= ${new Date(instantOf(query_start))}`)
  if (query_end !== undefined) conditions.push(sql`event.create_ts < ${new Date(instantOf(query_end))}`)
  if (actor_id !== undefined)
    conditions.push(sql`(event.user_id = ${actor_id}::uuid or event.token_id = ${actor_id}::uuid)`)
  if (before_event_id !== undefined) conditions.push(sql`event.event_id < ${before_event_id}::uuid`)
  return conditions
}

/** An address as events have it. Throws VALIDATION_ERROR for what is no address. */
function storedAddress(text: string | undefined): string | undefined {
  if (text === undefined || text === PLATFORM_ADDRESS) return text
  const address = canonicalAddress(text.trim())
  if (address !== null) return address
  const message = 'client_ip must be an IPv4 address, an IPv6 address, or "-" for the platform.'
  throw validationError([{ path: ['client_ip'], reason: 'invalid', message }])
}

function toEvent(row: EventRow): AuditEvent {
  const { event_id, create_ts, client_ip, ray_id, operation, outcome, code, changes, dropped_count } = row
  const { group_id, game_id, namespace_id, actor_kind, user_id, name, token_id } = row
  return {
    event_id,
    create_ts: timestamp(create_ts),
    ...(group_id === null ? {} : { group_id }),
    ...(game_id === null ? {} : { game_id }),
    ...(namespace_id === null ? {} : { namespace_id }),
    actor: {
      kind: actor_kind,
      ...(user_id === null ? {} : { user_id }),
      ...(name === null ? {} : { name }),
      ...(token_id === null ? {} : { token_id }),
    },
    ...{ client_ip, ray_id, operation, outcome },
    ...(code === null ? {} : { code }),
    changes,
    ...(dropped_count === 0 ? {} : { dropped_count }),
  }
}
