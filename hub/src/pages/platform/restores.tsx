// Restores: the backups in the repository, and the forms that restore one into an empty folder, or one game into this platform.
import type { getAdminBackups, ResponseOf } from '@musterhost/contract'
import { useState } from 'react'
import { listStoredBackups, restoreAdminBackup, restoreGame } from '../../api/operations.gen.ts'
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
type Chosen = { what: 'platform' | 'game'; name: string }

export function RestoreSection({ restores }: { restores: readonly Restore[] }) {
  const [is_listed, setListed] = useState(false)
  const [chosen, setChosen] = useState<Chosen | null>(null)
  const close = (): void => setChosen(null)
  return (
    <>
      <Section
        title="Restore"
        lead="The whole platform is restored into an empty folder, and this one is not changed. One game is restored into this platform."
        actions={is_listed ? null : <Button onClick={() => setListed(true)}>List the backups</Button>}
      >
        {is_listed ? <StoredBackups onRestore={setChosen} /> : <p className="p-4">The repository is read on demand.</p>}
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
      {chosen?.what === 'platform' ? <RestoreDialog name={chosen.name} onClose={close} /> : null}
      {chosen?.what === 'game' ? <RestoreGameDialog name={chosen.name} onClose={close} /> : null}
    </>
  )
}

function StoredBackups({ onRestore }: { onRestore: (chosen: Chosen) => void }) {
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
                <div className="flex flex-wrap gap-1">
                  <Button
                    kind="quiet"
                    onClick={() => onRestore({ what: 'platform', name })}
                    aria-label={`Restore ${name}`}
                  >
                    Restore
                  </Button>
                  <Button
                    kind="quiet"
                    onClick={() => onRestore({ what: 'game', name })}
                    aria-label={`Restore one game of ${name}`}
                  >
                    One game
                  </Button>
                </div>
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

function RestoreGameDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const [game, setGame] = useState('')
  const [name_id, setNameId] = useState('')
  const renamed = name_id.trim() === '' ? {} : { name_id: name_id.trim() }
  return (
    <ActionDialog
      operation={restoreGame}
      input={{ body: { name, game: game.trim(), ...renamed } }}
      words={{
        title: `Restore one game of ${name}`,
        submit: 'Restore the game',
        done: 'The restore has begun. Its outcome is listed here.',
      }}
      is_ready={game.trim() !== ''}
      muster={null}
      onClose={onClose}
    >
      {({ error }) => (
        <>
          <TextField
            label="Game"
            hint="Its short name or id at the time of the backup. The platform must not have it now."
            value={game}
            onChange={setGame}
            autoComplete="off"
            spellCheck={false}
            error={errorAt(error, 'game')}
          />
          <TextField
            label="Short name here"
            hint="Only where another game has its name. Empty: the same."
            value={name_id}
            onChange={setNameId}
            autoComplete="off"
            spellCheck={false}
            error={errorAt(error, 'name_id')}
          />
        </>
      )}
    </ActionDialog>
  )
}

function Outcome({ restore: { folder, game, node_id, end_ts, failure } }: { restore: Restore }) {
  if (end_ts === undefined) return <Badge>under way</Badge>
  if (failure !== undefined) return <span className="wrap-anywhere text-bad">{failure}</span>
  if (game !== undefined)
    return (
      <div className="flex flex-col items-start gap-2">
        <Badge tone="good">restored</Badge>
        <span className="wrap-anywhere">The game {game} is here. Make its tokens again, and add its domains.</span>
      </div>
    )
  return (
    <div className="flex flex-col items-start gap-2">
      <Badge tone="good">restored</Badge>
      <span className="wrap-anywhere">Stop this platform on {node_id}, and start the restored one:</span>
      <code className="wrap-anywhere">MUSTER_DATA={folder} muster start</code>
    </div>
  )
}
