// The audit log as a list: who changed what, when and from where. Filters are in the address.
import type { AuditEvent, listGroupAuditEvents as events } from '@musterhost/contract'
import { Fragment } from 'react'
import type { Input } from '../../api/call.ts'
import type { Described } from '../../api/describe.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { Badge, Pending, type Tone } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { type Filter, Filters, instantOf } from '../../shell/filters.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { type UrlState, useUrlState } from '../../shell/url-state.ts'

const NAMES = ['actor', 'operation', 'outcome', 'code', 'ray', 'address', 'from', 'to'] as const
type Name = (typeof NAMES)[number]
const NO_FILTERS = Object.fromEntries(NAMES.map((name) => [name, ''])) as UrlState<Name>
const PAGE_EVENTS = 100

const FILTERS: Filter<Name>[] = [
  { name: 'actor', label: 'Actor', placeholder: 'id of a user or token' },
  { name: 'operation', label: 'Operation', placeholder: 'games.createGame' },
  {
    name: 'outcome',
    label: 'Outcome',
    options: [
      { value: '', text: 'All' },
      ...['done', 'begun', 'failed', 'refused'].map((value) => ({ value, text: value })),
    ],
  },
  { name: 'code', label: 'Error code', placeholder: 'API_FORBIDDEN' },
  { name: 'ray', label: 'Ray', placeholder: 'id of a ray' },
  { name: 'address', label: 'Address', placeholder: '203.0.113.7' },
  { name: 'from', label: 'From', type: 'datetime-local' },
  { name: 'to', label: 'Until', type: 'datetime-local' },
]

type Query = NonNullable<Input<typeof events>['query']>

export type AuditSource = {
  operation: Described<typeof events>
  params: { group_id: string }
  /** The same by the command line. */
  muster?: string
}

export function AuditList({ source }: { source: AuditSource }) {
  const [state, change] = useUrlState(NAMES)
  const show = (outcome: string) => () => change({ ...NO_FILTERS, outcome })
  usePageActions([
    { id: 'audit-refused', title: 'Show what was refused', run: show('refused') },
    { id: 'audit-failed', title: 'Show what failed', run: show('failed') },
    { id: 'audit-all', title: 'Show the whole audit log', run: show('') },
  ])
  return (
    <>
      <Filters label="Filter the audit log" filters={FILTERS} state={state} onApply={change} />
      <Events key={JSON.stringify(state)} source={source} state={state} />
    </>
  )
}

function queryOf({ actor, operation, outcome, code, ray, address, from, to }: UrlState<Name>): Query {
  const [query_start, query_end] = [instantOf(from), instantOf(to)]
  return {
    limit: PAGE_EVENTS,
    ...(actor === '' ? {} : { actor_id: actor }),
    ...(operation === '' ? {} : { operation }),
    ...(outcome === '' ? {} : { outcome: outcome as NonNullable<Query['outcome']> }),
    ...(code === '' ? {} : { code }),
    ...(ray === '' ? {} : { ray_id: ray }),
    ...(address === '' ? {} : { client_ip: address }),
    ...(query_start === undefined ? {} : { query_start }),
    ...(query_end === undefined ? {} : { query_end }),
  }
}

function Events({ source, state }: { source: AuditSource; state: UrlState<Name> }) {
  const { operation, params, muster } = source
  const query = queryOf(state)
  const read = usePages(operation, { params, query }, ({ events: page, is_cut }) => {
    const last = page.at(-1)
    return is_cut && last !== undefined ? { params, query: { ...query, before_event_id: last.event_id } } : null
  })
  const shown = useEntries(read.data?.pages, (page) => page.events)
  return (
    <Section
      title="Newest first"
      actions={<CopyAs operation={operation} input={{ params, query }} {...(muster === undefined ? {} : { muster })} />}
    >
      {read.data === undefined ? (
        <Pending read={read} what="Loading the audit log" />
      ) : (
        <>
          <DataTable
            label="Audit log"
            rows={shown}
            rowId={({ event_id }) => event_id}
            columns={COLUMNS}
            whole_rows_max={1_000}
            empty="No event matches."
          />
          <ListEnd
            shown={shown.length}
            noun={plural(shown.length, 'event').replace(/^\S+ /, '')}
            has_more={read.hasNextPage}
            is_loading={read.isFetchingNextPage}
            onMore={() => void read.fetchNextPage()}
          />
        </>
      )}
    </Section>
  )
}

const TONES: Record<AuditEvent['outcome'], Tone> = { done: 'good', begun: 'warn', failed: 'bad', refused: 'bad' }

const COLUMNS: Column<AuditEvent>[] = [
  { id: 'when', title: 'When', width: 8, cell: ({ create_ts }) => <Ago ts={create_ts} /> },
  {
    id: 'actor',
    title: 'Actor',
    width: 14,
    cell: ({ actor }) => (
      <span className="wrap-break-word" title={actor.user_id ?? actor.token_id}>
        {actor.name ?? actor.kind} {actor.name === undefined ? null : <span className="text-soft">({actor.kind})</span>}
      </span>
    ),
  },
  {
    id: 'operation',
    title: 'Operation',
    width: 20,
    cell: ({ operation }) => (
      <code>
        <ApiName name={operation} />
      </code>
    ),
  },
  {
    id: 'outcome',
    title: 'Outcome',
    width: 12,
    cell: ({ outcome, code, dropped_count }) => (
      <>
        <Badge tone={TONES[outcome]}>{outcome}</Badge> {code === undefined ? null : <ApiName name={code} />}
        {dropped_count === undefined ? null : (
          <p className="text-xs text-soft">{plural(dropped_count, 'similar event')} before it not recorded</p>
        )}
      </>
    ),
  },
  { id: 'changes', is_secondary: true, title: 'Changes', cell: (event) => <Changes event={event} /> },
  { id: 'client', is_secondary: true, title: 'Address', width: 9, cell: ({ client_ip }) => <code>{client_ip}</code> },
  { id: 'ray', is_secondary: true, title: 'Ray', width: 7, cell: ({ ray_id }) => <ShortId id={ray_id} /> },
]

function Changes({ event }: { event: AuditEvent }) {
  if (event.changes.length === 0) return null
  return (
    <dl className="grid max-w-xl min-w-52 grid-cols-[max-content_minmax(0,1fr)] gap-x-3 text-xs">
      {event.changes.map(({ member, before, after, is_secret, is_cut }) => (
        <Fragment key={member}>
          <dt className="text-soft">{member}</dt>
          <dd className="wrap-anywhere">
            {is_secret === true ? (
              <span className="text-soft">secret, not recorded</span>
            ) : (
              <>
                {before === undefined ? null : <del className="text-soft">{before}</del>}{' '}
                {after === undefined ? (
                  <span className="text-soft">removed</span>
                ) : (
                  <ins className="no-underline">{after}</ins>
                )}
                {is_cut === true ? ' …' : null}
              </>
            )}
          </dd>
        </Fragment>
      ))}
    </dl>
  )
}
