// A group: its members with their roles, invites, and the group itself.
import type { getGroupMembers, ResponseOf } from '@musterhost/contract'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  createGroupInvite,
  deleteGroup,
  getGroupQuotas,
  getGroupMembers as getMembers,
  kickGroupMember,
  leaveGroup,
  setGroupMemberRole,
  transferGroupOwnership,
  updateGroupProfile,
} from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { usePerson } from '../../shell/person.tsx'
import { RenameForm } from '../rename-form.tsx'
import { useGroup } from './group.ts'
import { QuotaMeter, quotaName } from './quota-meter.tsx'

type Member = ResponseOf<typeof getGroupMembers>['members'][number]
type Opened = { kind: 'invite' | 'leave' | 'delete' } | { kind: 'transfer' | 'remove'; member: Member }

const ROLES = [
  { value: 'developer', text: 'developer' },
  { value: 'viewer', text: 'viewer' },
]

export default function Members() {
  const { group, may } = useGroup()
  const params = { group_id: group.group_id }
  const read = useCall(getMembers, { params })
  const [opened, setOpened] = useState<Opened | null>(null)
  const rename = useChange(updateGroupProfile, { done: 'The group is renamed.', shows_errors: true })
  return (
    <Page
      title={group.display_name}
      crumbs={[{ text: 'Home', to: HOME }]}
      lead="Owners manage the members. Developers change games. Viewers see everything and change nothing."
      actions={
        may(createGroupInvite) ? (
          <Button kind="primary" onClick={() => setOpened({ kind: 'invite' })}>
            Invite people
          </Button>
        ) : undefined
      }
    >
      <Section
        title="Members"
        actions={<CopyAs operation={getMembers} input={{ params }} muster={`members --group ${group.group_id}`} />}
      >
        <Pending read={read} />
        <MemberTable members={read.data?.members ?? []} onOpen={setOpened} />
      </Section>
      <Quotas />
      {may(updateGroupProfile) ? (
        <RenameForm
          name={group.display_name}
          length_max={24}
          is_busy={rename.isPending}
          error={rename.error}
          onSubmit={(display_name) => rename.mutate({ params, body: { display_name } })}
          copyAs={(display_name) => (
            <CopyAs
              operation={updateGroupProfile}
              input={{ params, body: { display_name } }}
              muster={`groups rename ${group.group_id} "${display_name}"`}
            />
          )}
        />
      ) : null}
      {group.is_current_identity_member && group.role !== 'owner' ? (
        <Section title="Leave the group">
          <div className="flex flex-wrap items-center justify-between gap-3 p-4">
            <p>You can no longer open its games. An owner can invite you again.</p>
            <Button kind="danger" onClick={() => setOpened({ kind: 'leave' })}>
              Leave the group
            </Button>
          </div>
        </Section>
      ) : null}
      {may(deleteGroup) ? (
        <Section title="Delete the group">
          <div className="flex flex-wrap items-center justify-between gap-3 p-4">
            <p>A group without games can be deleted.</p>
            <Button kind="danger" onClick={() => setOpened({ kind: 'delete' })}>
              Delete the group
            </Button>
          </div>
        </Section>
      ) : null}
      {opened === null ? null : <OpenedDialog opened={opened} onClose={() => setOpened(null)} />}
    </Page>
  )
}

function Quotas() {
  const { group } = useGroup()
  const read = useCall(getGroupQuotas, { params: { group_id: group.group_id } })
  return (
    <Section title="Quotas" lead="The operator of the platform sets the limits.">
      <Pending read={read} />
      <Facts
        facts={(read.data?.quotas ?? []).map(
          (quota) => [quotaName(quota), <QuotaMeter key={quota.quota} quota={quota} />] as const,
        )}
      />
    </Section>
  )
}

function MemberTable({ members, onOpen }: { members: readonly Member[]; onOpen: (opened: Opened) => void }) {
  const { group, may } = useGroup()
  const { identity_id } = usePerson()
  const setRole = useChange(setGroupMemberRole, { done: 'The role is changed.' })
  const columns: Column<Member>[] = [
    {
      id: 'name',
      title: 'Name',
      sortBy: ({ identity }) => identity.display_name,
      cell: ({ identity }) => (
        <>
          {identity.display_name} {identity.identity_id === identity_id ? <Badge>you</Badge> : null}
        </>
      ),
    },
    { id: 'email', is_secondary: true, title: 'E-mail', cell: ({ identity }) => identity.email ?? '' },
    {
      id: 'role',
      title: 'Role',
      cell: ({ identity, role }) =>
        role === 'owner' || !may(setGroupMemberRole) ? (
          role
        ) : (
          <SelectField
            label={`Role of ${identity.display_name}`}
            is_hidden_label
            value={role}
            options={ROLES}
            onChange={(chosen) =>
              setRole.mutate({
                params: { group_id: group.group_id, identity_id: identity.identity_id },
                body: { role: chosen === 'viewer' ? 'viewer' : 'developer' },
              })
            }
          />
        ),
    },
    {
      id: 'joined',
      is_secondary: true,
      title: 'Joined',
      sortBy: ({ join_ts }) => join_ts,
      cell: ({ join_ts }) => <Ago ts={join_ts} />,
    },
  ]
  if (may(kickGroupMember)) {
    columns.push({
      id: 'actions',
      title: 'Actions',
      cell: (member) =>
        member.role === 'owner' ? null : (
          <span className="flex justify-end gap-1">
            <Button kind="quiet" onClick={() => onOpen({ kind: 'transfer', member })}>
              Make owner
            </Button>
            <Button kind="quiet_danger" onClick={() => onOpen({ kind: 'remove', member })}>
              Remove
            </Button>
          </span>
        ),
    })
  }
  return (
    <DataTable
      label="Members"
      rows={members}
      rowId={({ identity }) => identity.identity_id}
      columns={columns}
      empty="The group has no member."
    />
  )
}

type DialogProps = { onClose: () => void }

function OpenedDialog({ opened, onClose }: DialogProps & { opened: Opened }) {
  switch (opened.kind) {
    case 'invite':
      return <Invite onClose={onClose} />
    case 'leave':
      return <Leave onClose={onClose} />
    case 'delete':
      return <Delete onClose={onClose} />
    case 'transfer':
      return <Transfer member={opened.member} onClose={onClose} />
    case 'remove':
      return <Remove member={opened.member} onClose={onClose} />
  }
}

const DAY_MS = 86_400_000
const LIFETIMES = [
  { value: '1', text: '1 day' },
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
]
const USES = [
  { value: '1', text: 'one person' },
  { value: '10', text: '10 people' },
  { value: '256', text: '256 people' },
]

function Invite({ onClose }: DialogProps) {
  const { group } = useGroup()
  const [role, setRole] = useState('developer')
  const [days, setDays] = useState('7')
  const [uses, setUses] = useState('1')
  const body = {
    role: role === 'viewer' ? ('viewer' as const) : ('developer' as const),
    ttl: Number(days) * DAY_MS,
    use_count: Number(uses),
  }
  return (
    <ActionDialog
      operation={createGroupInvite}
      input={{ params: { group_id: group.group_id }, body }}
      words={{ title: `Invite people to ${group.display_name}`, submit: 'Create an invite' }}
      muster={`members invite --group ${group.group_id}`}
      onDone={() => undefined}
      onClose={onClose}
    >
      {({ data }) => (
        <>
          <SelectField label="Role" value={role} options={ROLES} onChange={setRole} />
          <SelectField label="Valid for" value={days} options={LIFETIMES} onChange={setDays} />
          <SelectField label="For" value={uses} options={USES} onChange={setUses} />
          {data === undefined ? null : (
            <>
              <p>Send this address. It is not shown again.</p>
              <CodeLine text={`${location.origin}/invites/${data.code}`} />
            </>
          )}
        </>
      )}
    </ActionDialog>
  )
}

function Leave({ onClose }: DialogProps) {
  const { group } = useGroup()
  const navigate = useNavigate()
  return (
    <ActionDialog
      operation={leaveGroup}
      input={{ params: { group_id: group.group_id } }}
      words={{
        title: `Leave ${group.display_name}`,
        submit: 'Leave',
        done: `You have left ${group.display_name}.`,
        is_danger: true,
      }}
      onDone={() => void navigate({ to: HOME })}
      onClose={onClose}
    >
      <p>You no longer see its games. An owner can invite you again.</p>
    </ActionDialog>
  )
}

function Delete({ onClose }: DialogProps) {
  const { group } = useGroup()
  const navigate = useNavigate()
  return (
    <ActionDialog
      operation={deleteGroup}
      input={{ params: { group_id: group.group_id } }}
      words={{
        title: `Delete ${group.display_name}`,
        submit: 'Delete the group',
        done: `The group ${group.display_name} is deleted.`,
        is_danger: true,
      }}
      muster={`groups delete ${group.group_id}`}
      typed_name={group.display_name}
      onDone={() => void navigate({ to: HOME })}
      onClose={onClose}
    >
      <p>Delete its games first. This cannot be undone.</p>
    </ActionDialog>
  )
}

function Transfer({ member, onClose }: DialogProps & { member: Member }) {
  const { group } = useGroup()
  const { identity_id, display_name } = member.identity
  return (
    <ActionDialog
      operation={transferGroupOwnership}
      input={{ params: { group_id: group.group_id }, body: { new_owner_identity_id: identity_id } }}
      words={{
        title: `Make ${display_name} the owner`,
        submit: 'Transfer the group',
        done: `${display_name} owns the group.`,
        is_danger: true,
      }}
      muster={null}
      onClose={onClose}
    >
      <p>The owner of today becomes a developer.</p>
    </ActionDialog>
  )
}

function Remove({ member, onClose }: DialogProps & { member: Member }) {
  const { group } = useGroup()
  const { identity_id, display_name } = member.identity
  return (
    <ActionDialog
      operation={kickGroupMember}
      input={{ params: { group_id: group.group_id, identity_id } }}
      words={{
        title: `Remove ${display_name}`,
        submit: 'Remove',
        done: `${display_name} is removed.`,
        is_danger: true,
      }}
      muster={`members remove ${identity_id} --group ${group.group_id}`}
      onClose={onClose}
    >
      <p>All invites of the group are revoked too, because the member may know their codes.</p>
    </ActionDialog>
  )
}
