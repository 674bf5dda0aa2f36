// Memberships of groups that a provider decides. Each sign-in brings them to what the claims say. The provider changes only
// memberships that it made: those of people who were invited, and of owners, stay as they are.
import { GROUP_MEMBERS_MAX, type GroupRole } from '@musterhost/contract'
import type { Transaction } from 'kysely'
import type { FurtherChange } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'

type Role = Exclude<GroupRole, 'owner'>
type Current = { group_id: string; role: GroupRole; provider_id: string | null }

/** `role`: null takes the membership away. `before`: null when there was none. */
type MembershipChange = { group_id: string; before: Role | null; role: Role | null }

/** What a sign-in changes, by id of the group, so that two sign-ins lock groups in one order. Pure. */
export function membershipChanges(
  current: readonly Current[],
  wanted: ReadonlyMap<string, Role>,
  provider_id: string,
): MembershipChange[] {
  const by_group = new Map(current.map((one) => [one.group_id, one]))
  const changes: MembershipChange[] = []
  for (const [group_id, role] of wanted) {
    const member = by_group.get(group_id)
    if (member === undefined) changes.push({ group_id, before: null, role })
    else if (isOurs(member, provider_id) && member.role !== role) changes.push({ group_id, before: member.role, role })
  }
  for (const member of current) {
    if (isOurs(member, provider_id) && !wanted.has(member.group_id)) {
      changes.push({ group_id: member.group_id, before: member.role, role: null })
    }
  }
  return changes.sort((one, other) => (one.group_id < other.group_id ? -1 : 1))
}

function isOurs(member: Current, provider_id: string): member is Current & { role: Role } {
  return member.provider_id === provider_id && member.role !== 'owner'
}

type Person = { user_id: string; provider: { provider_id: string; name: string } }

/** Returns the changes for the audit log. A group that is full, or deleted, is left out. */
export async function updateMemberships(
  ctx: Context,
  trx: Transaction<Schema>,
  person: Person,
  wanted: ReadonlyMap<string, Role>,
): Promise<FurtherChange[]> {
  const { user_id, provider } = person
  const read = async () =>
    membershipChanges(
      await trx
        .selectFrom('group_members')
        .select(['group_id', 'role', 'provider_id'])
        .where('user_id', '=', user_id)
        .execute(),
      wanted,
      provider.provider_id,
    )
  const found = await read()
  if (found.length === 0) return []
  // Changes of one group's members run one after the other. What they changed meanwhile is read again.
  const groups = await trx
    .selectFrom('groups')
    .select('group_id')
    .where(
      'group_id',
      'in',
      found.map(({ group_id }) => group_id),
    )
    .orderBy('group_id')
    .forNoKeyUpdate()
    .execute()
  const locked = new Set(groups.map(({ group_id }) => group_id))
  const changed: FurtherChange[] = []
  for (const change of await read()) {
    if (locked.has(change.group_id) && (await applyChange(ctx, trx, person, change)))
      changed.push(eventOf(person, change))
  }
  return changed
}

async function applyChange(
  ctx: Context,
  trx: Transaction<Schema>,
  { user_id, provider: { provider_id } }: Person,
  { group_id, before, role }: MembershipChange,
): Promise<boolean> {
  if (role === null) {
    await trx.deleteFrom('group_members').where('group_id', '=', group_id).where('user_id', '=', user_id).execute()
    // The member may know the codes of invites.
    await trx
      .updateTable('group_invites')
      .set({ revoke_ts: new Date(ctx.now()) })
      .where('group_id', '=', group_id)
      .where('revoke_ts', 'is', null)
      .execute()
    return true
  }
  if (before !== null) {
    await trx
      .updateTable('group_members')
      .set({ role })
      .where('group_id', '=', group_id)
      .where('user_id', '=', user_id)
      .execute()
    return true
  }
  const { count } = await trx
    .selectFrom('group_members')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('group_id', '=', group_id)
    .executeTakeFirstOrThrow()
  if (Number(count) >= Math.min(GROUP_MEMBERS_MAX, ctx.config.quotas.members)) {
    ctx.log.warn({ group_id, user_id }, 'a sign-in could not make a person a member: the group is full')
    return false
  }
  await trx
    .insertInto('group_members')
    .values({ group_id, user_id, role, join_ts: new Date(ctx.now()), provider_id })
    .execute()
  return true
}

/** As the operation with the same effect records it. */
function eventOf({ user_id, provider }: Person, { group_id, before, role }: MembershipChange): FurtherChange {
  const member = { member_user_id: user_id, provider: provider.name }
  return {
    operation: role === null ? 'groups.kickMember' : 'groups.setMemberRole',
    scope: { group_id },
    before: before === null ? {} : { ...member, role: before },
    after: role === null ? {} : { ...member, role },
    actor: { actor_kind: 'platform' },
  }
}
