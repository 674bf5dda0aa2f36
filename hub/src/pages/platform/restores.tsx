// Restores: the backups in the repository, and the form that restores one into an empty folder.
import type { getAdminBackups, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { listStoredBackups, restoreAdminBackup } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { errorAt } from '../forms.ts'

const FOLDER = '/var/lib/muster-restored'

type Restore = ResponseOf<typeof getAdminBackups>['restores'][number]

export function RestoreSection({ restores }: { restores: readonly Restore[] }) {
  const [is_listed, setListed] = useState(false)
  const [name, setName] = useState<string | null>(null)
  return (
    <>
      <Section
        title="Restore"
        lead="A restore makes a platform in an empty folder. This one is not changed."
        actions={is_listed ? null : <Button onClick={() => setListed(true)}>List the backups</Button>}
      >
        {is_listed ? <StoredBackups onRestore={setName} /> : <p className="p-4">The repository is read on demand.</p>}
      </Section>
      <Section title="Restores">
        <DataTable
          label="Restores"
          rows={restores}
          rowId={({ restore_id }) => restore_id}
          empty="No backup was restored from here."
          columns={[
            { id: 'begin', title: 'Begun', cell: ({ begin_ts }) => <Ago ts={begin_ts} /> },
            { id: 'backup', title: 'Backup', cell: ({ backup }) => <code>{backup}</code> },
            { id: 'outcome', title: 'Outcome', cell: (restore) => <Outcome restore={restore} /> },
          ]}
        />
      </Section>
      {name === null ? null : <RestoreDialog name={name} onClose={() => setName(null)} />}
    </>
  )
}

function StoredBackups({ onRestore }: { onRestore: (name: string) => void }) {
  const read = useCall(listStoredBackups, {})
  return (
    <>
      <Pending read={read} what="Reading the repository" />
      {read.data === undefined ? null : (
        <DataTable
          label="Backups of the repository"
          rows={read.data.backups}
          rowId={({ name }) => name}
          empty="The repository has no finished backup."
          columns={[
            { id: 'time', title: 'Data of', cell: ({ create_ts }) => <Ago ts={create_ts} /> },
            { id: 'name', title: 'Name', cell: ({ name }) => <code>{name}</code> },
            {
              id: 'actions',
              title: 'Actions',
              cell: ({ name }) => (
                <Button kind="quiet" onClick={() => onRestore(name)} aria-label={`Restore ${name}`}>
                  Restore
                </Button>
              ),
            },
          ]}
        />
      )}
    </>
  )
}

function RestoreDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const [folder, setFolder] = useState(FOLDER)
  return (
    <ActionDialog
      operation={restoreAdminBackup}
      input={{ body: { name, folder: folder.trim() } }}
      words={{
        title: `Restore ${name}`,
        submit: 'Restore',
        done: 'The restore has begun. Its outcome is listed here.',
      }}
      is_ready={folder.trim() !== ''}
      muster={null}
      onClose={onClose}
    >
      {({ error }) => (
        <TextField
          label="Folder"
          hint="An absolute path on the machine of the api, empty or not there yet."
          value={folder}
          onChange={setFolder}
          autoComplete="off"
          spellCheck={false}
          error={errorAt(error, 'folder')}
        />
      )}
    </ActionDialog>
  )
}

function Outcome({ restore: { folder, node_id, end_ts, failure } }: { restore: Restore }) {
  if (end_ts === undefined) return <Badge>under way</Badge>
  if (failure !== undefined) return <span className="wrap-anywhere text-bad">{failure}</span>
  return (
    <div className="flex flex-col items-start gap-2">
      <Badge tone="good">restored</Badge>
      <span className="wrap-anywhere">Stop this platform on {node_id}, and start the restored one:</span>
      <code className="wrap-anywhere">MUSTER_DATA={folder} muster start</code>
    </div>
  )
}
