// The health of the platform: its processes, and the checks of `muster doctor` in the browser.
import type { listAdminProcesses, ResponseOf, runAdminChecks } from '@musterhost/contract'
import { listAdminProcesses as listProcesses, runAdminChecks as runChecks } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge, Failure, Loading, Pending, type Tone } from '../../parts/notice.tsx'
import { Empty, Page, Section } from '../../parts/page.tsx'
import { Age, Ago } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { Finds } from './finds.tsx'

type Process = ResponseOf<typeof listAdminProcesses>['processes'][number]
type Finding = ResponseOf<typeof runAdminChecks>['findings'][number]

const PROCESSES_EVERY_MS = 5_000
const TONES: Record<Finding['status'], Tone> = { ok: 'good', warning: 'warn', failed: 'bad', skipped: 'plain' }
/** What is wrong comes first. */
const ORDER: readonly Finding['status'][] = ['failed', 'warning', 'ok', 'skipped']

const COLUMNS: readonly Column<Process>[] = [
  { id: 'role', title: 'Role', sortBy: ({ role }) => role, cell: ({ role }) => role },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ state }) => state,
    cell: ({ state }) => <Badge tone={state === 'running' ? 'good' : 'bad'}>{state}</Badge>,
  },
  { id: 'text', is_secondary: true, title: 'What is known', is_text: true, cell: ({ text }) => text },
  { id: 'start', title: 'Runs for', cell: ({ start_ts }) => (start_ts === undefined ? '' : <Age since={start_ts} />) },
  {
    id: 'seen',
    is_secondary: true,
    title: 'Last seen',
    cell: ({ seen_ts }) => (seen_ts === undefined ? '' : <Ago ts={seen_ts} />),
  },
]

export default function Health() {
  const read = useCall(listProcesses, {}, { every_ms: PROCESSES_EVERY_MS })
  const checks = useChange(runChecks, { shows_errors: true })
  const run = (): void => checks.mutate({})
  usePageActions([{ id: 'checks', title: 'Run the checks', run }])
  return (
    <Page title="Health" crumbs={[{ text: 'Home', to: HOME }]}>
      <Section title="Processes" actions={<CopyAs operation={listProcesses} input={{}} />}>
        <Pending read={read} />
        {read.data === undefined ? null : (
          <DataTable
            label="Processes"
            rows={read.data.processes}
            rowId={({ name, role, node_id }) => `${name} ${role} ${node_id}`}
            columns={COLUMNS}
            empty="No process reports."
          />
        )}
      </Section>
      <Finds />
      <Section
        title="Checks"
        lead={
          <>
            What <code>muster doctor</code> checks beside a running platform: sandbox, database, DNS, certificates,
            disk, clock, mail and captcha.
          </>
        }
        actions={
          <>
            <Button kind="primary" is_busy={checks.isPending} onClick={run}>
              Run the checks
            </Button>
            <CopyAs operation={runChecks} input={{}} muster="doctor" />
          </>
        }
      >
        {checks.error === null ? null : <Failure error={checks.error} />}
        {checks.isPending ? <Loading what="Checking. It takes up to 30 seconds" /> : null}
        {checks.data === undefined ? (
          checks.isPending ? null : (
            <Empty>The checks have not run on this page yet.</Empty>
          )
        ) : (
          <Findings findings={checks.data.findings} />
        )}
      </Section>
    </Page>
  )
}

function Findings({ findings }: { findings: readonly Finding[] }) {
  const sorted = [...findings].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status))
  return (
    <ul className="divide-y divide-line">
      {sorted.map((finding) => (
        <li key={`${finding.check} ${finding.message}`} className="flex flex-col gap-2 px-4 py-3">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={TONES[finding.status]}>{finding.status}</Badge>
            <strong>{finding.check}</strong>
            <span className="min-w-0 wrap-anywhere">{finding.message}</span>
          </p>
          {finding.remedy === undefined ? null : <CodeLine text={finding.remedy} />}
        </li>
      ))}
    </ul>
  )
}
