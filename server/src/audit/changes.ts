// Changes that the audit log records. `changes` opens the transaction of a changing operation, and writes its audit event as
// the last statement of that transaction. So the change and its event are committed together, or neither is. The types
// leave no way to commit without saying what changed.
import { ApiError } from '@musterhost/contract'
import { CompiledQuery, type Kysely, type Transaction } from 'kysely'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { newId, newRayId } from '../ids.ts'
import { type Actor, type AuditedRequest, actorOf, type Event, INSERT_SQL, type Scope, tokenOf } from './events.ts'
import { changedMembers, type Members } from './members.ts'

/** The context of a request. `audit`: null where unaudited.ts lists the operation. */
export type ChangeContext = Context & { audit: AuditedRequest | null }

/**
 * What a transaction changed: the members and their values before and after. A new thing has no members before, a removed one
 * none after.
 */
export type AuditedChange = {
  before: Members
  after: Members
  /** More of the scope than was known before the work. */
  scope?: Scope
  /** Where it is not the caller: a person who has just logged in. */
  actor?: Actor
  /** What the same transaction changed besides. Each has an event of its own. */
  also?: readonly FurtherChange[]
}

/** `operation`: the one with this effect. */
export type FurtherChange = Omit<AuditedChange, 'also'> & { operation: string; scope: Scope }

/** For what the platform does without a request: the events have the actor `platform`. `operation`: the one with this effect. */
export function asPlatform(ctx: Context, operation: string): ChangeContext {
  return {
    ...ctx,
    audit: { operation, caller: 'platform', authorization: undefined, client_ip: '-', ray_id: newRayId() },
  }
}

/** Does `work` in a transaction, and records what it says has changed: null is nothing. Returns what `work` returned. */
export function changes<T extends AuditedChange | null>(
  ctx: ChangeContext,
  scope: Scope,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  const request = requireAudited(ctx)
  return ctx.db.transaction().execute(async (trx) => {
    const change = await work(trx)
    if (change !== null) {
      const also = change.also ?? []
      const events = [
        eventOf(ctx, request, scope, change),
        ...also.map((one) => eventOf(ctx, { ...request, operation: one.operation }, {}, one)),
      ]
      await insert(
        trx,
        events.map((event) => ({ ...event, outcome: 'done' as const })),
      )
    }
    return change
  })
}

/**
 * For commands to the matchmaker, which become true in its journal and not in a transaction of the caller, and for lines that
 * are written to a lobby. The event is
 * committed as `begun` before the work, and becomes `done` or `failed` after it. So no command is without an event. An event
 * stays `begun` only when a process died in between, or the database was away. The work returns false when the command had no effect.
 */
export async function command<T extends boolean>(
  ctx: ChangeContext,
  scope: Scope,
  change: Pick<AuditedChange, 'before' | 'after'>,
  work: () => Promise<T>,
): Promise<T> {
  const event = eventOf(ctx, requireAudited(ctx), scope, change)
  await insert(ctx.db, [{ ...event, outcome: 'begun' }])
  try {
    const result = await work()
    await end(ctx, event.event_id, result ? 'done' : 'failed', null)
    return result
  } catch (error) {
    await end(ctx, event.event_id, 'failed', error instanceof ApiError ? error.code : 'INTERNAL_ERROR')
    throw error
  }
}

/** Records a log-in that failed. It changes nothing, so it has no transaction. */
export async function recordFailure(ctx: ChangeContext, code: string, after: Members): Promise<void> {
  const event = eventOf(ctx, requireAudited(ctx), {}, { before: {}, after })
  await insert(ctx.db, [{ ...event, outcome: 'failed', code }])
}

function requireAudited({ audit }: ChangeContext): AuditedRequest {
  if (audit === null) throw new Error('An operation that audit/unaudited.ts lists changes something that is audited.')
  return audit
}

function eventOf(ctx: Context, request: AuditedRequest, scope: Scope, change: AuditedChange): Omit<Event, 'outcome'> {
  const { operation, caller, authorization, client_ip, ray_id } = request
  const now_ms = ctx.now()
  return {
    event_id: newId(now_ms),
    create_ts: new Date(now_ms),
    ...scope,
    ...change.scope,
    ...(change.actor ?? actorOf(caller, tokenOf(ctx.keys, authorization))),
    ...{ operation, client_ip, ray_id },
    changes: changedMembers(change.before, change.after),
    dropped_count: 0,
  }
}

async function insert(db: Kysely<Schema>, events: readonly Event[]): Promise<void> {
  await db.executeQuery(CompiledQuery.raw(INSERT_SQL, [JSON.stringify(events)]))
}

/** The command has its result whatever happens here: an event that cannot be completed stays `begun`. */
async function end(ctx: Context, event_id: string, outcome: 'done' | 'failed', code: string | null): Promise<void> {
  try {
    await ctx.db.updateTable('audit_events').set({ outcome, code }).where('event_id', '=', event_id).execute()
  } catch (error) {
    ctx.log.error({ err: error, event_id, outcome }, 'an audit event could not be completed; it stays begun')
  }
}
