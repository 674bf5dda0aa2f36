// A machine joins: its invitation is used up, its key is certified, and it gets a database role. All refusals are audit
// events. The secret of an invitation is the only proof; it is valid once, for a short time.
import { asPlatform, type ChangeContext, changes, recordFailure } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Authority } from '../authority.ts'
import { hashOfSecret } from '../invitation.ts'
import { keyHash } from '../names.ts'
import { CERTIFICATE_LIFETIME_MS, type JoinResponse, NODE_ROLES } from '../protocol.ts'
import { LinkRefusal } from '../streams.ts'
import { dropRevokedRoles, newRoleName } from './database-role.ts'

/** Operation that the audit events of a join name. It is no operation of the API. */
const JOIN_OPERATION = 'nodes.join'

export type JoinAttempt = { secret: string; public_key: string; version: string; client_ip: string }

/** Throws a LinkRefusal that says why the invitation is not valid. */
export async function joinNode(ctx: Context, authority: Authority, attempt: JoinAttempt): Promise<JoinResponse> {
  const audited = asPlatform(ctx, JOIN_OPERATION)
  const of_client: ChangeContext = {
    ...audited,
    audit: audited.audit && { ...audited.audit, client_ip: attempt.client_ip },
  }
  try {
    return await useInvitation(of_client, authority, attempt)
  } catch (error) {
    if (error instanceof LinkRefusal) await recordFailure(of_client, error.code, { version: attempt.version })
    throw error
  }
}

async function useInvitation(
  ctx: ChangeContext,
  authority: Authority,
  { secret, public_key, version, client_ip }: JoinAttempt,
): Promise<JoinResponse> {
  const now_ms = ctx.now()
  const key = Buffer.from(public_key, 'base64')
  // A removed node with this name may still have a role, which must not be forgotten.
  await dropRevokedRoles(ctx)
  const { after, certificate } = await changes(ctx, {}, async (trx) => {
    const invitation = await trx
      .selectFrom('node_invitations')
      .selectAll()
      .where('secret_hash', '=', hashOfSecret(secret))
      .forUpdate()
      .executeTakeFirstOrThrow(() => new LinkRefusal('NODE_INVITATION_UNKNOWN', UNKNOWN))
    const { invitation_id, node_id, region, use_ts, revoke_ts, expire_ts } = invitation
    if (use_ts !== null) throw new LinkRefusal('NODE_INVITATION_USED', usedSentence(node_id, use_ts))
    if (revoke_ts !== null) throw new LinkRefusal('NODE_INVITATION_REVOKED', `The invitation was revoked. ${AGAIN}`)
    if (expire_ts.getTime() <= now_ms) {
      throw new LinkRefusal('NODE_INVITATION_EXPIRED', `The invitation expired at ${expire_ts.toISOString()}. ${AGAIN}`)
    }
    const roles = NODE_ROLES.filter((role) => invitation.roles.includes(role))
    const known = await trx
      .selectFrom('node_links')
      .select('revoke_ts')
      .where('node_id', '=', node_id)
      .forUpdate()
      .executeTakeFirst()
    if (known !== undefined && known.revoke_ts === null)
      throw new LinkRefusal('NODE_NAME_TAKEN', takenSentence(node_id))
    const certified = await authority.certifyNode(node_id, key, now_ms).catch(() => {
      throw new LinkRefusal('NODE_KEY_INVALID', 'The key of the new machine is no P-256 key.', 400)
    })
    const now = new Date(now_ms)
    await trx
      .updateTable('node_invitations')
      .set({ use_ts: now, use_ip: client_ip })
      .where('invitation_id', '=', invitation_id)
      .execute()
    const node = { region, roles: [...roles], removed_ts: null, drain_ts: null, drain_deadline_ts: null }
    await trx
      .insertInto('nodes')
      .values({ node_id, ...node })
      .onConflict((conflict) => conflict.column('node_id').doUpdateSet({ ...node, drain_at_match_end: false }))
      .execute()
    const joined = {
      key_hash: keyHash(key),
      version,
      join_ts: now,
      certificate_expire_ts: new Date(now_ms + CERTIFICATE_LIFETIME_MS),
      revoke_ts: null,
      database_role: newRoleName(),
    }
    await trx
      .insertInto('node_links')
      .values({ node_id, ...joined })
      .onConflict((conflict) => conflict.column('node_id').doUpdateSet(joined))
      .execute()
    return { before: {}, after: { node_id, region, roles, invitation_id, version }, certificate: certified }
  })
  const { node_id, region, roles } = after
  return { node_id, region, roles, certificate, authority: authority.certificate }
}

const AGAIN = 'Make a new one on the platform: muster nodes invite'
const UNKNOWN = `The platform has no such invitation. ${AGAIN}`

function takenSentence(node_id: string): string {
  return (
    `A machine has joined as "${node_id}" with another invitation. Remove it first on the platform: ` +
    `muster nodes remove ${node_id}`
  )
}

function usedSentence(node_id: string, use_ts: Date): string {
  return (
    `The invitation was used at ${use_ts.toISOString()}. An invitation is valid once. ` +
    `If that was not you, remove the node "${node_id}" on the platform: muster nodes remove ${node_id}`
  )
}
