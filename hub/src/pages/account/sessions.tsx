// Where the person is signed in, and how to end that.
import type { listSessions, ResponseOf } from '@musterhost/contract'
import { endOtherSessions, endSession, listSessions as list } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'

type OpenSession = ResponseOf<typeof listSessions>['sessions'][number]

export function Sessions() {
  const read = useCall(list, {})
  const end = useChange(endSession, { done: 'The session is ended.' })
  const endOthers = useChange(endOtherSessions, {
    done: ({ ended_count }) => `${plural(ended_count, 'session')} ended.`,
  })
  const sessions = read.data?.sessions ?? []
  const columns: Column<OpenSession>[] = [
    {
      id: 'agent',
      title: 'Browser',
      cell: ({ user_agent, is_current }) => (
        <>
          {browserOf(user_agent)} {is_current ? <Badge tone="good">this one</Badge> : null}
        </>
      ),
    },
    { id: 'address', is_secondary: true, title: 'Address', cell: ({ client_ip }) => client_ip ?? '' },
    { id: 'used', title: 'Last used', cell: ({ refresh_ts }) => <Ago ts={refresh_ts} /> },
    { id: 'created', is_secondary: true, title: 'Signed in', cell: signedIn },
    {
      id: 'actions',
      title: 'Actions',
      cell: ({ session_id, is_current }) =>
        is_current ? null : (
          <Button kind="quiet_danger" onClick={() => end.mutate({ params: { session_id } })}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Section
      title="Sessions"
      actions={
        <>
          {sessions.length > 1 ? (
            <Button is_busy={endOthers.isPending} onClick={() => endOthers.mutate({})}>
              End all others
            </Button>
          ) : null}
          <CopyAs operation={list} input={{}} />
        </>
      }
    >
      <Pending read={read} />
      {read.data === undefined ? null : (
        <DataTable
          label="Sessions"
          rows={sessions}
          rowId={({ session_id }) => session_id}
          columns={columns}
          empty="There is no session."
        />
      )}
    </Section>
  )
}

function signedIn({ create_ts, passkey_name }: OpenSession) {
  return (
    <>
      <Ago ts={create_ts} />
      {passkey_name === undefined ? null : ` with ${passkey_name}`}
    </>
  )
}

const BROWSERS = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['Linux', 'Linux'],
] as const

/** "Firefox on Linux". An unknown program is shown as it names itself. */
function browserOf(user_agent: string | undefined): string {
  if (user_agent === undefined) return 'unknown'
  const browser = BROWSERS.find(([mark]) => user_agent.includes(mark))?.[1]
  const system = SYSTEMS.find(([mark]) => user_agent.includes(mark))?.[1]
  if (browser === undefined) return user_agent.slice(0, 60)
  return system === undefined ? browser : `${browser} on ${system}`
}
