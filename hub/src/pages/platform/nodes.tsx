// The nodes of the platform: what each runs and uses, and taking one out of service.

import { type ReactNode, useState } from 'react'
import { listNodes as list } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Meter } from '../../parts/meter.tsx'
import { Badge, Pending, type Tone } from '../../parts/notice.tsx'
import { bytes, count, plural } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Age, Ago, useNow } from '../../parts/time.tsx'
import { CancelDrain, DrainNode, type Node, RemoveNode } from './node-changes.tsx'
import { NodeInvitations } from './node-invitations.tsx'
import { NodeUse } from './node-use.tsx'

type Opened = { kind: 'drain' | 'cancel' | 'remove'; node_id: string }

const NODES_EVERY_MS = 2_000
/** Nodes of one response: all are drawn, because a row has two lines. */
const NODES_MAX = 1_000
/** A node renews its certificate of 24 hours after 12. One that has less left could not. */
const RENEWED_LATE_MS = 11 * 3_600_000
/** A smaller difference of clocks is that of the way. */
const CLOCK_OFFSET_SHOWN_MS = 2_000
const MEBIBYTE = 1024 * 1024
const TONES: Record<Node['state'], Tone> = {
  open: 'good',
  away: 'bad',
  no_manager: 'bad',
  not_available: 'warn',
  draining: 'warn',
  drained: 'plain',
  removed: 'plain',
}

export default function Nodes() {
  const read = useCall(list, {}, { every_ms: NODES_EVERY_MS })
  const [opened, setOpened] = useState<Opened | null>(null)
  const node = read.data?.nodes.find(({ node_id }) => node_id === opened?.node_id)
  const close = () => setOpened(null)
  return (
    <Page title="Nodes" crumbs={[{ text: 'Home', to: HOME }]} lead="The machines of the platform.">
      <Section title="All nodes" actions={<CopyAs operation={list} input={{}} muster="nodes" />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Nodes"
            rows={read.data.nodes}
            rowId={({ node_id }) => node_id}
            columns={columnsOf(setOpened)}
            whole_rows_max={NODES_MAX}
            empty="No node reports. Run muster doctor on the machine of the platform."
          />
        )}
        {read.data?.is_complete === false ? (
          <p>There are more nodes: these are the first {count(read.data.nodes.length)} by name.</p>
        ) : null}
      </Section>
      <NodeUse />
      <NodeInvitations />
      {node !== undefined && opened?.kind === 'drain' ? <DrainNode node={node} onClose={close} /> : null}
      {node !== undefined && opened?.kind === 'cancel' ? <CancelDrain node={node} onClose={close} /> : null}
      {node !== undefined && opened?.kind === 'remove' ? <RemoveNode node={node} onClose={close} /> : null}
    </Page>
  )
}

function columnsOf(onOpen: (opened: Opened) => void): Column<Node>[] {
  return [
    {
      id: 'name',
      title: 'Node',
      sortBy: ({ node_id }) => node_id,
      cell: ({ node_id, roles }) => (
        <>
          <span className="font-medium wrap-anywhere">{node_id}</span>
          <Small>{roles.length === 0 ? 'no role reports' : roles.join(', ')}</Small>
        </>
      ),
    },
    { id: 'state', title: 'State', sortBy: ({ state }) => state, cell: (node) => <State node={node} /> },
    {
      id: 'regions',
      is_secondary: true,
      title: 'Regions',
      sortBy: ({ regions }) => regions.join(' '),
      cell: ({ regions }) => regions.join(', ') || '–',
    },
    {
      id: 'lobbies',
      title: 'Lobbies',
      is_number: true,
      sortBy: ({ lobby_count }) => lobby_count,
      cell: ({ lobby_count, player_count }) => (
        <>
          {count(lobby_count)}
          <Small>{plural(player_count, 'player')}</Small>
        </>
      ),
    },
    { id: 'use', is_secondary: true, title: 'Lobbies use', sortBy: shareOf, cell: (node) => <Use node={node} /> },
    {
      id: 'link',
      is_secondary: true,
      title: 'Link',
      sortBy: ({ link }) => link?.round_trip_ms,
      cell: (node) => <Link node={node} />,
    },
    {
      id: 'version',
      is_secondary: true,
      title: 'Version',
      sortBy: ({ version }) => version,
      cell: ({ version }) => (version === undefined || version === '' ? '–' : <code>{version}</code>),
    },
    {
      id: 'seen',
      is_secondary: true,
      title: 'Last seen',
      sortBy: ({ seen_ts }) => seen_ts,
      cell: ({ seen_ts }) => (seen_ts === undefined ? 'never' : <Ago ts={seen_ts} />),
    },
    { id: 'actions', title: 'Actions', cell: (node) => <Actions node={node} onOpen={onOpen} /> },
  ]
}

function Small({ children }: { children: ReactNode }) {
  return <span className="block text-xs text-soft">{children}</span>
}

function State({ node: { state, seen_ts, drain } }: { node: Node }) {
  return (
    <>
      <Badge tone={TONES[state]}>{state}</Badge>
      {state === 'away' && seen_ts !== undefined ? (
        <Small>
          for <Age since={seen_ts} />
        </Small>
      ) : null}
      {state === 'draining' && drain?.at_match_end ? <Small>no new players</Small> : null}
      {state === 'draining' && drain?.deadline_ts !== undefined ? (
        <Small>
          ends <Ago ts={drain.deadline_ts} />
        </Small>
      ) : null}
    </>
  )
}

/** The larger share of cores and memory. */
function shareOf({ cpu_cores, cpu_cores_max, memory_mb, memory_mb_max }: Node): number | undefined {
  const shares = [cpu_cores_max, memory_mb_max].flatMap((limit, at) =>
    limit === undefined ? [] : [(at === 0 ? cpu_cores : memory_mb) / Math.max(limit, 1)],
  )
  return shares.length === 0 ? undefined : Math.max(...shares)
}

function Use({ node: { roles, cpu_cores, cpu_cores_max, memory_mb, memory_mb_max } }: { node: Node }) {
  if (!roles.includes('runner') && cpu_cores_max === undefined && cpu_cores === 0) return '–'
  const limit = memory_mb_max === undefined ? undefined : memory_mb_max * MEBIBYTE
  return (
    <span className="flex min-w-max flex-col">
      <span className="flex items-center gap-1">
        <Meter label="Cores" value={cpu_cores} max={cpu_cores_max} format={count} /> cores
      </span>
      <Meter label="Memory" value={memory_mb * MEBIBYTE} max={limit} format={bytes} />
    </span>
  )
}

function Link({ node: { link, state } }: { node: Node }) {
  if (link === undefined) return '–'
  const { round_trip_ms, clock_offset_ms = 0, certificate_expire_ts } = link
  const round_trip = round_trip_ms === undefined ? 'not measured' : `${Math.round(round_trip_ms)} ms`
  return (
    <>
      <span className="numbers">{state === 'away' ? 'no connection' : round_trip}</span>
      {Math.abs(clock_offset_ms) < CLOCK_OFFSET_SHOWN_MS ? null : (
        <Small>
          its clock is {Math.round(Math.abs(clock_offset_ms) / 1_000)} s {clock_offset_ms > 0 ? 'ahead' : 'behind'}
        </Small>
      )}
      <Small>
        <CertificateEnd ts={certificate_expire_ts} />
      </Small>
    </>
  )
}

function CertificateEnd({ ts }: { ts: string }) {
  const rest_ms = Date.parse(ts) - useNow()
  if (rest_ms > RENEWED_LATE_MS) {
    return (
      <>
        certificate ends <Ago ts={ts} />
      </>
    )
  }
  return (
    <Badge tone={rest_ms > 0 ? 'warn' : 'bad'}>
      certificate {rest_ms > 0 ? 'ends' : 'ended'} <Ago ts={ts} />
    </Badge>
  )
}

function Actions({ node, onOpen }: { node: Node; onOpen: (opened: Opened) => void }) {
  const { node_id, drain, state, link } = node
  const action = (kind: Opened['kind'], text: string, label: string) => (
    <Button
      kind={kind === 'remove' ? 'quiet_danger' : 'quiet'}
      onClick={() => onOpen({ kind, node_id })}
      aria-label={label}
    >
      {text}
    </Button>
  )
  if (state === 'removed') {
    // A joined node that was removed needs a new invitation.
    return link === undefined ? action('cancel', 'Take back', `Take back ${node_id}`) : null
  }
  return (
    <span className="flex flex-wrap gap-x-1 sm:min-w-max">
      {drain === undefined
        ? action('drain', 'Drain', `Drain ${node_id}`)
        : action('cancel', 'Cancel', `Cancel the drain of ${node_id}`)}
      {action('remove', 'Remove', `Remove ${node_id}`)}
    </span>
  )
}
