// All groups, with their owners and the quotas that are used most.
import type { listAdminGroups, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { listAdminGroups as listGroups } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { groupLink, HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { QuotaMeter } from '../group/quota-meter.tsx'

type Group = ResponseOf<typeof listAdminGroups>['groups'][number]
type Quota = Group['quotas'][number]

const COLUMNS: readonly Column<Group>[] = [
  {
    id: 'name',
    title: 'Group',
    sortBy: ({ display_name }) => display_name,
    cell: ({ group_id, display_name }) => <Link to={groupLink(group_id)}>{display_name}</Link>,
  },
  {
    id: 'owner',
    is_secondary: true,
    title: 'Owner',
    cell: ({ owner }) => owner?.email ?? owner?.display_name ?? 'none',
  },
  {
    id: 'lobbies',
    title: 'Lobbies',
    is_number: true,
    sortBy: ({ lobby_count }) => lobby_count,
    cell: ({ lobby_count }) => count(lobby_count),
  },
  {
    id: 'players',
    title: 'Players',
    is_number: true,
    sortBy: ({ player_count }) => player_count,
    cell: ({ player_count }) => count(player_count),
  },
  {
    id: 'quota',
    title: 'Fullest quota',
    sortBy: ({ quotas }) => shareOf(fullest(quotas)),
    cell: ({ quotas }) => {
      const quota = fullest(quotas)
      return quota === undefined ? '' : <QuotaMeter quota={quota} has_name />
    },
  },
  {
    id: 'created',
    is_secondary: true,
    title: 'Created',
    sortBy: ({ create_ts }) => create_ts,
    cell: ({ create_ts }) => <Ago ts={create_ts} />,
  },
]

function shareOf(quota: Quota | undefined): number {
  return quota?.limit === undefined ? 0 : quota.used / Math.max(1, quota.limit)
}

function fullest(quotas: readonly Quota[]): Quota | undefined {
  return quotas.reduce<Quota | undefined>((best, quota) => (shareOf(quota) > shareOf(best) ? quota : best), quotas[0])
}

export default function Groups() {
  const [{ text }, change] = useUrlState(['text'])
  const query = text === '' ? {} : { text }
  const read = usePages(listGroups, { query }, ({ groups, is_cut }) => {
    const before_group_id = groups.at(-1)?.group_id
    return is_cut && before_group_id !== undefined ? { query: { ...query, before_group_id } } : null
  })
  const groups = useEntries(read.data?.pages, (page) => page.groups)
  return (
    <Page title="Groups" crumbs={[{ text: 'Home', to: HOME }]}>
      <div className="max-w-sm">
        <TextField
          label="Search by name"
          type="search"
          value={text}
          onChange={(value) => change({ text: value }, { is_step: false })}
        />
      </div>
      <Section title="All groups" actions={<CopyAs operation={listGroups} input={{ query }} />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Groups"
            rows={groups}
            rowId={({ group_id }) => group_id}
            columns={COLUMNS}
            empty="No group has such a name."
          />
        )}
        <ListEnd
          shown={groups.length}
          noun={groups.length === 1 ? 'group' : 'groups'}
          has_more={read.hasNextPage}
          is_loading={read.isFetchingNextPage}
          onMore={() => void read.fetchNextPage()}
        />
      </Section>
    </Page>
  )
}
