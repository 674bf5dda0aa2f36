// What the platform does again and again: when it last ran, and whether it failed.
import type { listAdminJobs, ResponseOf } from '@musterhost/contract'
import { listAdminJobs as listJobs } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { duration } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'

type Job = ResponseOf<typeof listAdminJobs>['jobs'][number]

const JOBS_EVERY_MS = 10_000

const COLUMNS: readonly Column<Job>[] = [
  { id: 'name', title: 'Job', sortBy: ({ name }) => name, cell: ({ name }) => name.replaceAll('_', ' ') },
  { id: 'role', is_secondary: true, title: 'Role', sortBy: ({ role }) => role, cell: ({ role }) => role },
  {
    id: 'outcome',
    title: 'Last run',
    cell: ({ failure, last_run_ts }) => {
      if (failure !== undefined) return <Badge tone="bad">failed</Badge>
      return last_run_ts === undefined ? 'not yet' : <Badge tone="good">succeeded</Badge>
    },
  },
  {
    id: 'time',
    is_secondary: true,
    title: 'When',
    sortBy: ({ last_run_ts }) => last_run_ts,
    cell: ({ last_run_ts }) => (last_run_ts === undefined ? '' : <Ago ts={last_run_ts} />),
  },
  {
    id: 'duration',
    is_secondary: true,
    title: 'Took',
    is_number: true,
    sortBy: ({ last_duration_ms }) => last_duration_ms,
    cell: ({ last_duration_ms }) => (last_duration_ms === undefined ? '' : duration(last_duration_ms)),
  },
  {
    id: 'next',
    is_secondary: true,
    title: 'Next',
    cell: ({ next_run_ts }) => (next_run_ts === undefined ? '' : <Ago ts={next_run_ts} />),
  },
  { id: 'failure', title: 'Why it failed', cell: ({ failure }) => failure ?? '' },
]

export default function Jobs() {
  const read = useCall(listJobs, {}, { every_ms: JOBS_EVERY_MS })
  return (
    <Page title="Jobs" crumbs={[{ text: 'Home', to: HOME }]}>
      <Section title="All jobs" actions={<CopyAs operation={listJobs} input={{}} />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Jobs"
            rows={read.data.jobs}
            rowId={({ role, name }) => `${role} ${name}`}
            columns={COLUMNS}
            empty="No job has run yet."
          />
        )}
      </Section>
    </Page>
  )
}
