// The last backups, and the last runs of `muster verify`.
import type { getAdminBackups as getBackups, ResponseOf } from '@musterhost/contract'
import { getAdminBackups } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { bytes, count, plural } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'

const DAY_MS = 86_400_000

type Recorded = ResponseOf<typeof getBackups>

export default function Backups() {
  const read = useCall(getAdminBackups, {})
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
          <BackupSection backups={read.data.backups} />
          <VerificationSection verifications={read.data.verifications} />
        </>
      )}
    </Page>
  )
}

function BackupSection({ backups }: Pick<Recorded, 'backups'>) {
  return (
    <Section title="Backups" lead="A backup is made on the machine of the platform:">
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
