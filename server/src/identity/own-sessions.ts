// The sessions of the person who calls: listed, and ended one by one or all others at once.
import { ApiError, type SessionSummary } from '@musterhost/contract'
import { type ChangeContext, changes } from '../audit/changes.ts'
import type { Context } from '../context.ts'
import type { CallerOf } from '../tokens/caller.ts'

type Person = CallerOf<'admin' | 'user'>

/** Sessions of one response: all that a person can have. */
const SESSIONS_MAX = 50

export async function listSessions(ctx: Context, caller: Person): Promise<{ sessions: SessionSummary[] }> {
  const { user_id } = caller
  if (user_id === null) return { sessions: [] }
  const rows = await ctx.db
    .selectFrom('user_sessions')
    .leftJoin('passkeys', 'passkeys.passkey_id', 'user_sessions.passkey_id')
    .select(['session_id', 'user_sessions.create_ts', 'refresh_ts', 'expire_ts', 'client_ip', 'user_agent'])
    .select('passkeys.name as passkey_name')
    .where('user_sessions.user_id', '=', user_id)
    .where('end_ts', 'is', null)
    .where('expire_ts', '>', new Date(ctx.now()))
    .orderBy('refresh_ts', 'desc')
    .orderBy('session_id', 'desc')
    .limit(SESSIONS_MAX)
    .execute()
  const sessions = rows.map(
    ({ session_id, create_ts, refresh_ts, expire_ts, client_ip, user_agent, passkey_name }) => ({
      session_id,
      create_ts: create_ts.toISOString(),
      refresh_ts: refresh_ts.toISOString(),
      expire_ts: expire_ts.toISOString(),
      is_current: session_id === caller.session_id,
      ...(client_ip === null ? {} : { client_ip }),
      ...(user_agent === null ? {} : { user_agent }),
      ...(passkey_name === null ? {} : { passkey_name }),
    }),
  )
  return { sessions }
}

/** Throws SESSION_NOT_FOUND, also for a session of another person. */
export async function endOwnSession(ctx: ChangeContext, { user_id }: Person, session_id: string): Promise<void> {
  if (user_id === null) throw new ApiError('SESSION_NOT_FOUND')
  await changes(ctx, {}, async (trx) => {
    await trx
      .updateTable('user_sessions')
      .set({ end_ts: new Date(ctx.now()) })
      .where('session_id', '=', session_id)
      .where('user_id', '=', user_id)
      .where('end_ts', 'is', null)
      .returning('session_id')
      .executeTakeFirstOrThrow(() => new ApiError('SESSION_NOT_FOUND'))
    return { before: { session_id }, after: { end_reason: 'ended_by_user' } }
  })
}

export async function endOtherSessions(ctx: ChangeContext, caller: Person): Promise<{ ended_count: number }> {
  const { user_id, session_id } = caller
  const { after } = await changes(ctx, {}, async (trx) => {
    const ended =
      user_id === null
        ? []
        : await trx
            .updateTable('user_sessions')
            .set({ end_ts: new Date(ctx.now()) })
            .where('user_id', '=', user_id)
            .where('end_ts', 'is', null)
            .$if(session_id !== undefined, (query) => query.where('session_id', '<>', session_id!))
            .returning('session_id')
            .execute()
    return { before: {}, after: { ended_count: ended.length } }
  })
  return after
}
