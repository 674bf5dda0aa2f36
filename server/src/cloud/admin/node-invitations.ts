// Invitations of machines to join as nodes. The database has only a hash of the secret. The invitation also has the hash of
// the platform's key, so that the new machine sends the secret to no other platform.
import { randomBytes } from 'node:crypto'
import {
  ApiError,
  type BodyOf,
  type createNodeInvitation,
  type listNodeInvitations,
  NODE_INVITATION_TTL_MS_DEFAULT,
  NODE_INVITATIONS_LISTED_MAX,
  type ResponseOf,
} from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import { hashOfSecret, newSecret, writeInvitation } from '../../links/invitation.ts'
import { NODE_ROLES, NODE_ROLES_DEFAULT } from '../../links/protocol.ts'
import { ownCommand } from '../../wire/platform-version.ts'
import { cut } from '../lists.ts'
import { timestamp } from '../times.ts'

type Invitation = ResponseOf<typeof listNodeInvitations>['invitations'][number]

const RANDOM_NAME_BYTES = 3

/** Throws NODE_NAME_TAKEN and NODE_REGION_UNKNOWN. */
export async function createInvitation(
  ctx: ChangeContext,
  body: BodyOf<typeof createNodeInvitation>,
): Promise<ResponseOf<typeof createNodeInvitation>> {
  const { ttl = NODE_INVITATION_TTL_MS_DEFAULT, roles = [...NODE_ROLES_DEFAULT] } = body
  const node_id = body.name ?? `node-${randomBytes(RANDOM_NAME_BYTES).toString('hex')}`
  const region = regionOf(ctx, body.region)
  // Most platforms have one machine: the library of certificates takes 4 MB.
  const { openPlatformAuthority } = await import('../../links/platform/authority.ts')
  const { key_hash } = await openPlatformAuthority(ctx)
  const now_ms = ctx.now()
  const secret = newSecret()
  const invitation_id = newId(now_ms)
  const expire_ts = new Date(now_ms + ttl)
  await changes(ctx, {}, async (trx) => {
    const known = await trx
      .selectFrom('nodes')
      .innerJoin('node_links', 'node_links.node_id', 'nodes.node_id')
      .where('nodes.node_id', '=', node_id)
      .where('removed_ts', 'is', null)
      .select('nodes.node_id')
      .executeTakeFirst()
    if (known !== undefined) throw new ApiError('NODE_NAME_TAKEN', { name: node_id })
    await trx
      .insertInto('node_invitations')
      .values({
        ...{ invitation_id, secret_hash: hashOfSecret(secret), node_id, region, roles: [...roles], expire_ts },
        create_ts: new Date(now_ms),
      })
      .execute()
    return { before: {}, after: { invitation_id, node_id, region, roles, expire_ts } }
  })
  const invitation = writeInvitation({ key_hash, secret })
  const platform_url = new URL(mainUrl(ctx.config)).origin
  return {
    invitation_id,
    invitation,
    platform_url,
    join_command: `${ownCommand()} join ${platform_url} ${invitation}`,
    node_id,
    region,
    roles: [...roles],
    expire_ts: timestamp(expire_ts),
  }
}

/** The only region need not be named. */
function regionOf({ config }: Context, wanted: string | undefined): string {
  const names = config.regions.map(({ name }) => name)
  const [only, ...others] = names
  if (wanted === undefined && only !== undefined && others.length === 0) return only
  if (wanted !== undefined && names.includes(wanted)) return wanted
  const regions = names.join(', ')
  const message =
    wanted === undefined
      ? `The platform has several regions: name one of ${regions}.`
      : `The platform has no region ${wanted}. Its regions: ${regions}.`
  throw new ApiError('NODE_REGION_UNKNOWN', { regions: names }, { message })
}

export async function listInvitations(ctx: Context): Promise<ResponseOf<typeof listNodeInvitations>> {
  const found = await ctx.db
    .selectFrom('node_invitations')
    .selectAll()
    .orderBy('create_ts', 'desc')
    .orderBy('invitation_id', 'desc')
    .limit(NODE_INVITATIONS_LISTED_MAX + 1)
    .execute()
  const { rows, is_cut } = cut(found, NODE_INVITATIONS_LISTED_MAX)
  const now_ms = ctx.now()
  const invitations = rows.map((row): Invitation => {
    const { invitation_id, node_id, region, create_ts, expire_ts, use_ts, use_ip } = row
    return {
      ...{ invitation_id, node_id, region, roles: NODE_ROLES.filter((role) => row.roles.includes(role)) },
      state: stateOf(row, now_ms),
      create_ts: timestamp(create_ts),
      expire_ts: timestamp(expire_ts),
      ...(use_ts !== null && { use_ts: timestamp(use_ts) }),
      ...(use_ip !== null && { use_ip }),
    }
  })
  return { invitations, is_cut }
}

type States = { use_ts: Date | null; revoke_ts: Date | null; expire_ts: Date }

function stateOf({ use_ts, revoke_ts, expire_ts }: States, now_ms: number): Invitation['state'] {
  if (use_ts !== null) return 'used'
  if (revoke_ts !== null) return 'revoked'
  return expire_ts.getTime() <= now_ms ? 'expired' : 'open'
}

/** A second time it changes nothing. Throws NODE_INVITATION_NOT_FOUND, also for one that was used. */
export async function revokeInvitation(ctx: ChangeContext, invitation_id: string): Promise<Record<string, never>> {
  await changes(ctx, {}, async (trx) => {
    const invitation = await trx
      .selectFrom('node_invitations')
      .select(['node_id', 'use_ts', 'revoke_ts'])
      .where('invitation_id', '=', invitation_id)
      .forUpdate()
      .executeTakeFirst()
    if (invitation === undefined || invitation.use_ts !== null) throw new ApiError('NODE_INVITATION_NOT_FOUND')
    if (invitation.revoke_ts !== null) return null
    const revoke_ts = new Date(ctx.now())
    await trx.updateTable('node_invitations').set({ revoke_ts }).where('invitation_id', '=', invitation_id).execute()
    return { before: { invitation_id, node_id: invitation.node_id }, after: {} }
  })
  return {}
}
