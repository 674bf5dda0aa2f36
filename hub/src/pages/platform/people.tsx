// All people who have signed in.
import type { listAdminUsers, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { createSignInLink, listAdminUsers as listUsers } from '../../api/operations.gen.ts'
import { useChange, useEntries, usePages } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable, ListEnd } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Dialog } from '../../parts/lazy-dialogs.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'

type User = ResponseOf<typeof listAdminUsers>['users'][number]

const COLUMNS: readonly Column<User>[] = [
  {
    id: 'name',
    title: 'Name',
    sortBy: ({ display_name }) => display_name,
    cell: ({ display_name, access_name }) => (
      <>
        {display_name} {access_name === undefined ? null : <Badge>administrator</Badge>}
      </>
    ),
  },
  {
    id: 'way',
    is_secondary: true,
    title: 'Signs in by',
    cell: ({ email, access_name }) => email ?? (access_name === undefined ? '' : `access token "${access_name}"`),
  },
  {
    id: 'groups',
    is_secondary: true,
    title: 'Groups',
    is_number: true,
    sortBy: ({ group_count }) => group_count,
    cell: ({ group_count }) => count(group_count),
  },
  {
    id: 'sessions',
    is_secondary: true,
    title: 'Sessions',
    is_number: true,
    sortBy: ({ session_count }) => session_count,
    cell: ({ session_count }) => count(session_count),
  },
  {
    id: 'seen',
    title: 'Last seen',
    sortBy: ({ seen_ts }) => seen_ts,
    cell: ({ seen_ts }) => (seen_ts === undefined ? '' : <Ago ts={seen_ts} />),
  },
  {
    id: 'created',
    is_secondary: true,
    title: 'Joined',
    sortBy: ({ create_ts }) => create_ts,
    cell: ({ create_ts }) => <Ago ts={create_ts} />,
  },
]

export default function People() {
  const [{ text }, change] = useUrlState(['text'])
  const query = text === '' ? {} : { text }
  const read = usePages(listUsers, { query }, ({ users, is_cut }) => {
    const before_identity_id = users.at(-1)?.identity_id
    return is_cut && before_identity_id !== undefined ? { query: { ...query, before_identity_id } } : null
  })
  const users = useEntries(read.data?.pages, (page) => page.users)
  const [url, setUrl] = useState<string | null>(null)
  const link = useChange(createSignInLink, { onDone: (made) => setUrl(made.url) })
  return (
    <Page
      title="People"
      crumbs={[{ text: 'Home', to: HOME }]}
      actions={
        <>
          <Button is_busy={link.isPending} onClick={() => link.mutate({})}>
            Create a sign-in link for you
          </Button>
          <CopyAs operation={createSignInLink} input={{}} />
        </>
      }
    >
      <div className="max-w-sm">
        <TextField
          label="Search by name or e-mail address"
          type="search"
          value={text}
          onChange={(value) => change({ text: value }, { is_step: false })}
        />
      </div>
      <Section title="All people" actions={<CopyAs operation={listUsers} input={{ query }} />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="People"
            rows={users}
            rowId={({ identity_id }) => identity_id}
            columns={COLUMNS}
            empty="No person has such a name or address."
          />
        )}
        <ListEnd
          shown={users.length}
          noun={users.length === 1 ? 'person' : 'people'}
          has_more={read.hasNextPage}
          is_loading={read.isFetchingNextPage}
          onMore={() => void read.fetchNextPage()}
        />
      </Section>
      {url === null ? null : (
        <Dialog title="A link that signs you in once" onClose={() => setUrl(null)}>
          <p>It works for an hour, on any device. Everyone who has it is an administrator: keep it secret.</p>
          <CodeLine text={url} />
        </Dialog>
      )}
    </Page>
  )
}
