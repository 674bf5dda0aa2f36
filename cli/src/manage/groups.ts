// Groups and their members.
import {
  createGroup,
  createGroupInvite,
  deleteGroup,
  getGroupMembers,
  kickGroupMember,
  listGroups,
  type ResponseOf,
  setGroupMemberRole,
  updateGroupProfile,
} from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

type Group = ResponseOf<typeof listGroups>['groups'][number]
type Member = ResponseOf<typeof getGroupMembers>['members'][number]
export type GroupOptions = GlobalOptions & { group?: string }

export async function showGroups(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Groups at ${url}`)
  const { groups, is_cut } = await client.call(listGroups, {})
  if (terminal.is_json) return terminal.json({ groups, is_cut })
  printTable(
    terminal,
    groups,
    [
      { title: 'GROUP', text: ({ display_name }) => display_name },
      { title: 'YOU ARE', text: ({ role }) => role ?? '-' },
      { title: 'MEMBERS', text: ({ member_count }) => String(member_count), align: 'right' },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'ID', text: ({ group_id }) => group_id, is_whole: true },
    ],
    'There is no group yet. Create one: muster groups create NAME',
  )
}

export async function showGroup(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const { group } = await openGroup(terminal, { ...options, group: name })
  if (terminal.is_json) return terminal.json({ group })
  printFields(terminal, [
    ['group', group.display_name],
    ['id', group.group_id],
    ['you are', group.role ?? 'no member'],
    ['members', String(group.member_count)],
    ['page', group.external.profile],
    ['created', ago(terminal, group.create_ts)],
  ])
}

export async function addGroup(terminal: Terminal, display_name: string, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  terminal.note(`Creating the group ${display_name} at ${url}`)
  const { group_id } = await client.call(createGroup, { body: { display_name } })
  if (terminal.is_json) return terminal.json({ group_id })
  terminal.note(`Created the group ${display_name} (${group_id}).`)
}

export async function setGroupName(
  terminal: Terminal,
  name: string,
  display_name: string,
  options: GlobalOptions,
): Promise<void> {
  const { client, group } = await openGroup(terminal, { ...options, group: name })
  await client.call(updateGroupProfile, { params: { group_id: group.group_id }, body: { display_name } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`The group ${group.display_name} is called "${display_name}" now.`)
}

export async function removeGroup(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { client, group } = await openGroup(terminal, { ...options, group: name })
  await confirmRemoval(terminal, `Delete the group ${group.display_name}?`, options)
  await client.call(deleteGroup, { params: { group_id: group.group_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the group ${group.display_name}.`)
}

export async function showMembers(terminal: Terminal, options: GroupOptions): Promise<void> {
  const { client, group } = await openGroup(terminal, options)
  const { members } = await client.call(getGroupMembers, { params: { group_id: group.group_id } })
  if (terminal.is_json) return terminal.json({ members })
  printTable(
    terminal,
    members,
    [
      { title: 'NAME', text: ({ identity }) => identity.display_name },
      { title: 'E-MAIL', text: ({ identity }) => identity.email ?? '-' },
      { title: 'ROLE', text: ({ role }) => role },
      { title: 'JOINED', text: ({ join_ts }) => ago(terminal, join_ts) },
      { title: 'ID', text: ({ identity }) => identity.identity_id, is_whole: true },
    ],
    'The group has no members. Invite one: muster members invite',
  )
}

export async function inviteMember(
  terminal: Terminal,
  options: GroupOptions & { role?: 'developer' | 'viewer'; expires?: number; uses?: number },
): Promise<void> {
  const { client, group } = await openGroup(terminal, options)
  const { code } = await client.call(createGroupInvite, {
    params: { group_id: group.group_id },
    body: {
      ...(options.role === undefined ? {} : { role: options.role }),
      ...(options.expires === undefined ? {} : { ttl: options.expires }),
      ...(options.uses === undefined ? {} : { use_count: options.uses }),
    },
  })
  if (terminal.is_json) return terminal.json({ code })
  terminal.print(code)
  terminal.note('The code is shown once. Send it to the person who joins.')
}

export async function setMemberRole(
  terminal: Terminal,
  who: string,
  role: 'developer' | 'viewer',
  options: GroupOptions,
): Promise<void> {
  const { client, group, member } = await openMember(terminal, who, options)
  const params = { group_id: group.group_id, identity_id: member.identity.identity_id }
  await client.call(setGroupMemberRole, { params, body: { role } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`${member.identity.display_name} is a ${role} of ${group.display_name} now.`)
}

export async function removeMember(
  terminal: Terminal,
  who: string,
  options: GroupOptions & RemovalOptions,
): Promise<void> {
  const { client, group, member } = await openMember(terminal, who, options)
  const { identity } = member
  await confirmRemoval(terminal, `Remove ${identity.display_name} and revoke all invites of the group?`, options)
  await client.call(kickGroupMember, { params: { group_id: group.group_id, identity_id: identity.identity_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${identity.display_name} from ${group.display_name}.`)
}

/** The group with this name or id, or the only one. */
export function findGroup(groups: readonly Group[], wanted: string | undefined): Group {
  const found = groups.filter(
    ({ group_id, display_name }) => wanted === undefined || [group_id, display_name].includes(wanted),
  )
  const [only, ...others] = found
  if (only !== undefined && others.length === 0) return only
  const names = groups.map(({ display_name }) => display_name)
  if (only !== undefined) {
    throw new Failure(wanted === undefined ? 'There are several groups.' : `Several groups are called ${wanted}.`, {
      exit_code: EXIT.usage,
      remedy: `Name one, or give its id: --group NAME. Groups: ${names.join(', ')}`,
    })
  }
  if (wanted === undefined)
    throw new Failure('There is no group yet.', { remedy: 'Create one: muster groups create NAME' })
  throw new Failure(`There is no group ${wanted}.${didYouMean(wanted, names)}`, {
    remedy: 'See all: muster groups list',
  })
}

export async function openGroup(
  terminal: Terminal,
  options: GroupOptions,
): Promise<{ client: Session['client']; group: Group }> {
  const { client, url } = await openSession(terminal, options)
  const { groups } = await client.call(listGroups, {})
  const group = findGroup(groups, options.group)
  terminal.note(`Group ${group.display_name} at ${url}`)
  return { client, group }
}

async function openMember(terminal: Terminal, who: string, options: GroupOptions) {
  const { client, group } = await openGroup(terminal, options)
  const { members } = await client.call(getGroupMembers, { params: { group_id: group.group_id } })
  return { client, group, member: findMember(members, who) }
}

function findMember(members: readonly Member[], who: string): Member {
  const namesOf = ({ identity }: Member): string[] => [
    identity.identity_id,
    identity.email ?? '',
    identity.display_name,
  ]
  const found = members.filter((member) => namesOf(member).includes(who))
  const [only, ...others] = found
  if (only !== undefined && others.length === 0) return only
  if (only !== undefined)
    throw new Failure(`Several members are called ${who}.`, { remedy: 'Give the e-mail address or the id.' })
  throw new Failure(`The group has no member ${who}.${didYouMean(who, members.flatMap(namesOf))}`, {
    remedy: 'See all: muster members list',
  })
}
