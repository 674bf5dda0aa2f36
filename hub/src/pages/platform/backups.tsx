// The schedule of backups, the last ones with their checks, and restores.
import type { getAdminBackups as getBackups, ResponseOf } from '@musterhost/contract'
import { getAdminBackups, runAdminBackup } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { bytes, count, plural } from '../../parts/numbers.ts'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Ago, Instant, useNow } from '../../parts/time.tsx'
import { RestoreSection } from './restores.tsx'

const DAY_MS = 86_400_000
/** A backup or a restore may be under way. */
const READ_EVERY_MS = 5_000

type Recorded = ResponseOf<typeof getBackups>

export default function Backups() {
  const read = useCall(getAdminBackups, {}, { every_ms: READ_EVERY_MS })
  return (
    <Page
      title="Backups"
      crumbs={[{ text: 'Home', to: HOME }]}
      actions={<CopyAs operation={getAdminBackups} input={{}} muster="backup FOLDER" />}
    >
      <Pending read={read} />
      {read.data === undefined ? null : (
        <>
          <Newest create_ts={read.data.backups[0]?.create_ts} />
          <ScheduleSection schedule={read.data.schedule} />
          <BackupSection backups={read.data.backups} />
          <VerificationSection verifications={read.data.verifications} />
          {read.data.schedule === undefined ? null : <RestoreSection restores={read.data.restores} />}
        </>
      )}
    </Page>
  )
}

function ScheduleSection({ schedule }: Pick<Recorded, 'schedule'>) {
  const run = useChange(runAdminBackup, { done: 'A backup begins. It is listed here when it was read again.' })
  if (schedule === undefined) {
    return (
      <Section title="Schedule" lead="Name a folder or a bucket, and the platform is backed up every day:">
        <div className="flex flex-col gap-2 p-4">
          <CodeLine text="MUSTER_BACKUP_TO=/var/backups/muster" />
          <a href="/docs/backups">How backups work</a>
        </div>
      </Section>
    )
  }
  const { to, schedule: times, keep, is_encrypted, last_ts, next_ts, failure } = schedule
  return (
    <Section
      title="Schedule"
      actions={
        <Button is_busy={run.isPending} onClick={() => run.mutate({})}>
          Back up now
        </Button>
      }
    >
      {failure === undefined ? null : (
        <div className="p-4">
          <Notice tone="bad">The last backup failed. {failure}</Notice>
        </div>
      )}
      <Facts
        facts={[
          ['Last success', last_ts === undefined ? 'none yet' : <Ago key="last" ts={last_ts} />],
          ['Next', next_ts === undefined ? 'not planned' : <Instant key="next" ts={next_ts} />],
          ['Into', <code key="to">{to}</code>],
          [
            'Times',
            <span key="times">
              <code>{times}</code> in UTC
            </span>,
          ],
          ['Kept', <code key="keep">{keep}</code>],
          [
            'Encrypted',
            is_encrypted ? (
              <Badge key="yes" tone="good">
                yes
              </Badge>
            ) : (
              <Badge key="no" tone="warn">
                no: MUSTER_BACKUP_KEY is not set
              </Badge>
            ),
          ],
        ]}
      />
    </Section>
  )
}

function BackupSection({ backups }: Pick<Recorded, 'backups'>) {
  return (
    <Section title="Backups" lead="A backup by hand is made on the machine of the platform:">
      <div className="p-4">
        <CodeLine text="muster backup /var/backups/muster" />
      </div>
      <DataTable
        label="Backups"
        rows={backups}
        rowId={({ backup_id }) => backup_id}
        empty="No backup was made yet."
        columns={[
          { id: 'time', title: 'Data of', cell: ({ create_ts }) => <Ago ts={create_ts} /> },
          { id: 'folder', title: 'Folder', cell: ({ folder }) => <code>{folder}</code> },
          {
            id: 'rows',
            is_secondary: true,
            title: 'Rows',
            is_number: true,
            cell: ({ row_count }) => count(row_count),
          },
          {
            id: 'files',
            is_secondary: true,
            title: 'Files',
            is_number: true,
            cell: ({ object_count }) => count(object_count),
          },
          { id: 'size', title: 'Size', is_number: true, cell: ({ object_bytes }) => bytes(object_bytes) },
          {
            id: 'lacking',
            title: 'Outcome',
            cell: ({ lacking_count }) =>
              lacking_count === 0 ? (
                <Badge tone="good">whole</Badge>
              ) : (
                <Badge tone="bad">without {plural(lacking_count, 'lost file')}</Badge>
              ),
          },
        ]}
      />
    </Section>
  )
}

function VerificationSection({ verifications }: Pick<Recorded, 'verifications'>) {
  return (
    <Section title="Checks of all stored data">
      <div className="p-4">
        <CodeLine text="muster verify" />
      </div>
      <DataTable
        label="Runs of muster verify"
        rows={verifications}
        rowId={({ end_ts, subject }) => `${end_ts} ${subject}`}
        empty="muster verify was not run yet."
        columns={[
          { id: 'time', title: 'When', cell: ({ end_ts }) => <Ago ts={end_ts} /> },
          { id: 'subject', title: 'Of', cell: ({ subject, folder }) => folder ?? `the ${subject}` },
          {
            id: 'outcome',
            title: 'Outcome',
            cell: ({ is_sound, finding_count }) =>
              is_sound ? (
                <Badge tone="good">sound</Badge>
              ) : (
                <Badge tone="bad">{plural(finding_count, 'finding')}</Badge>
              ),
          },
        ]}
      />
    </Section>
  )
}

function Newest({ create_ts }: { create_ts: string | undefined }) {
  const now = useNow()
  if (create_ts === undefined)
    return <Notice tone="warn">There is no backup. A lost disk would lose everything.</Notice>
  if (now - Date.parse(create_ts) < DAY_MS) return null
  return (
    <Notice tone="warn">
      The newest backup was made <Ago ts={create_ts} />.
    </Notice>
  )
}
