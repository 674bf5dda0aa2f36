// Invitations of machines: the one-time command for a new machine, and the list with the revocation of each.
import type { createNodeInvitation, listNodeInvitations, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import {
  createNodeInvitation as create,
  listAdminRegions,
  listNodeInvitations as listInvitations,
  revokeNodeInvitation,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { CheckField, SelectField, TextField } from '../../parts/fields.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Pending, type Tone } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { errorAt } from '../forms.ts'

type Invitation = ResponseOf<typeof listNodeInvitations>['invitations'][number]
type Invited = ResponseOf<typeof createNodeInvitation>

/** A name or an address: it is part of a command line. */
const HOST = /^[a-zA-Z0-9.:-]{1,253}$/
const INVITATIONS_EVERY_MS = 5_000
const MINUTE_MS = 60_000
const LIFETIMES = [
  { value: String(15 * MINUTE_MS), text: '15 minutes', command: '15m' },
  { value: String(60 * MINUTE_MS), text: '1 hour', command: '1h' },
  { value: String(24 * 60 * MINUTE_MS), text: '1 day', command: '1d' },
  { value: String(7 * 24 * 60 * MINUTE_MS), text: '7 days', command: '7d' },
]
/** As `muster nodes invite --roles` takes them. */
const ROLES = [
  { value: 'runner', text: 'Runs lobbies', roles: ['runner'] },
  { value: 'runner,edge', text: 'Runs lobbies, and serves players itself', roles: ['runner', 'edge'] },
  { value: 'edge', text: 'Serves players', roles: ['edge'] },
] as const
const TONES: Record<Invitation['state'], Tone> = { open: 'warn', used: 'good', expired: 'plain', revoked: 'plain' }

export function NodeInvitations() {
  const read = useCall(listInvitations, {}, { every_ms: INVITATIONS_EVERY_MS })
  const [is_new, setNew] = useState(false)
  const [invited, setInvited] = useState<{ response: Invited; public_host: string } | null>(null)
  const [revoked, setRevoked] = useState<Invitation | null>(null)
  const [has_past, setPast] = useState(false)
  const invitations = (read.data?.invitations ?? []).filter(({ state }) => has_past || state === 'open')
  return (
    <Section
      title="Invitations"
      lead="An invitation lets one machine join, once. The machine opens one connection to the platform; none of its ports has to be open."
      actions={
        <>
          <CheckField label="Past ones too" checked={has_past} onChange={setPast} />
          <Button kind="primary" onClick={() => setNew(true)}>
            Invite a machine
          </Button>
          <CopyAs operation={listInvitations} input={{}} muster="nodes invitations" />
        </>
      }
    >
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Invitations"
          rows={invitations}
          rowId={({ invitation_id }) => invitation_id}
          columns={columnsOf(setRevoked)}
          empty={has_past ? 'No machine was invited yet.' : 'No invitation is open.'}
        />
      )}
      {is_new ? (
        <NewInvitation
          onClose={() => setNew(false)}
          onCreated={(response, public_host) => {
            setNew(false)
            setInvited({ response, public_host })
          }}
        />
      ) : null}
      {invited === null ? null : <JoinCommand {...invited} onClose={() => setInvited(null)} />}
      {revoked === null ? null : <Revoke invitation={revoked} onClose={() => setRevoked(null)} />}
    </Section>
  )
}

function columnsOf(onRevoke: (invitation: Invitation) => void): Column<Invitation>[] {
  return [
    { id: 'node', title: 'Node', sortBy: ({ node_id }) => node_id, cell: ({ node_id }) => node_id },
    { id: 'region', is_secondary: true, title: 'Region', sortBy: ({ region }) => region, cell: ({ region }) => region },
    {
      id: 'state',
      title: 'State',
      sortBy: ({ state }) => state,
      cell: ({ state, use_ip }) => (
        <>
          <Badge tone={TONES[state]}>{state}</Badge> {use_ip === undefined ? null : <>from {use_ip}</>}
        </>
      ),
    },
    {
      id: 'end',
      title: 'When',
      sortBy: ({ use_ts, expire_ts }) => use_ts ?? expire_ts,
      cell: ({ state, use_ts, expire_ts, create_ts }) => {
        if (use_ts !== undefined) return <Ago ts={use_ts} />
        if (state === 'revoked')
          return (
            <>
              created <Ago ts={create_ts} />
            </>
          )
        return (
          <>
            {state === 'open' ? 'expires' : 'expired'} <Ago ts={expire_ts} />
          </>
        )
      },
    },
    {
      id: 'actions',
      title: 'Actions',
      cell: (invitation) =>
        invitation.state === 'open' ? (
          <Button
            kind="quiet_danger"
            onClick={() => onRevoke(invitation)}
            aria-label={`Revoke the invitation of ${invitation.node_id}`}
          >
            Revoke
          </Button>
        ) : null,
    },
  ]
}

/** `public_host`: where players can reach the edge of the node; empty: nowhere, or it has none. */
type NewInvitationProps = { onCreated: (invited: Invited, public_host: string) => void; onClose: () => void }

function NewInvitation({ onCreated, onClose }: NewInvitationProps) {
  const regions = useCall(listAdminRegions, {}).data?.regions ?? []
  const [name, setName] = useState('')
  const [chosen, setRegion] = useState('')
  const [ttl, setTtl] = useState(LIFETIMES[0]!.value)
  const [role_text, setRoles] = useState<string>(ROLES[0].value)
  const [typed_host, setPublicHost] = useState('')
  const { roles } = ROLES.find(({ value }) => value === role_text)!
  const has_edge = role_text.includes('edge')
  const public_host = has_edge ? typed_host.trim() : ''
  const is_host = public_host === '' || HOST.test(public_host)
  const region = chosen === '' ? (regions[0]?.region_name_id ?? '') : chosen
  const body = { ttl: Number(ttl), region, roles: [...roles], ...(name === '' ? {} : { name }) }
  const lifetime = LIFETIMES.find(({ value }) => value === ttl)!.command
  return (
    <ActionDialog
      operation={create}
      input={{ body }}
      words={{ title: 'Invite a machine', submit: 'Invite' }}
      muster={`nodes invite${name === '' ? '' : ` --name ${name}`} --region ${region} --roles ${role_text} --ttl ${lifetime}`}
      is_ready={region !== '' && is_host}
      onDone={(response) => onCreated(response, public_host)}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <TextField
            label="Name of the node"
            hint="Lower-case letters, digits and single hyphens. Empty: a random name."
            value={name}
            onChange={setName}
            autoComplete="off"
            error={errorAt(error, 'name')}
          />
          <SelectField
            label="Region"
            hint="It runs lobbies of this region."
            value={region}
            onChange={setRegion}
            options={regions.map(({ region_name_id, region_display_name }) => ({
              value: region_name_id,
              text: region_display_name,
            }))}
          />
          <SelectField
            label="What it does"
            hint="A machine that serves players sees all that they send, and has the keys of player tokens: only one that you trust."
            value={role_text}
            onChange={setRoles}
            options={ROLES.map(({ value, text }) => ({ value, text }))}
          />
          {has_edge ? (
            <TextField
              label="Public host"
              hint="Where players reach this machine, for example attic.example.com. Empty: they are sent to the platform."
              value={typed_host}
              onChange={setPublicHost}
              autoComplete="off"
              error={is_host ? undefined : 'A host name or an address, without port or https://.'}
            />
          ) : null}
          <SelectField label="Valid for" value={ttl} onChange={setTtl} options={LIFETIMES} />
        </>
      )}
    </ActionDialog>
  )
}

type JoinCommandProps = { response: Invited; public_host: string; onClose: () => void }

function JoinCommand({ response, public_host, onClose }: JoinCommandProps) {
  const { node_id, region, join_command, expire_ts } = response
  const setting = public_host === '' ? '' : `MUSTER_EDGE_PUBLIC_HOST=${public_host} `
  return (
    <Dialog title={`Join as ${node_id}`} is_wide onClose={onClose}>
      <p>Run this on the new machine (Linux), with the same version of Muster. It is shown only once:</p>
      <CodeLine text={`${setting}${join_command}`} />
      <p>
        It works once, for the node {node_id} in region {region}. It expires <Ago ts={expire_ts} />. Everyone who has it
        can join: keep it secret.
      </p>
    </Dialog>
  )
}

function Revoke({ invitation: { invitation_id, node_id }, onClose }: { invitation: Invitation; onClose: () => void }) {
  return (
    <ActionDialog
      operation={revokeNodeInvitation}
      input={{ params: { invitation_id } }}
      words={{
        title: `Revoke the invitation of ${node_id}`,
        submit: 'Revoke',
        done: 'The invitation is revoked.',
        is_danger: true,
      }}
      muster={`nodes uninvite ${invitation_id}`}
      onClose={onClose}
    >
      <p>No machine can join with it any more. This cannot be undone.</p>
    </ActionDialog>
  )
}
