// The uploaded builds or sites of a game.
import type { Operation } from '@musterhost/contract'
import { useState } from 'react'
import type { Input } from '../../api/call.ts'
import type { Described } from '../../api/describe.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge } from '../../parts/notice.tsx'
import { bytes } from '../../parts/numbers.ts'
import { Ago } from '../../parts/time.tsx'

export type UploadedRow = {
  id: string
  upload_id: string
  display_name: string
  create_ts: string
  content_length: number
  complete: boolean
}

export type UploadRemoval<O extends Operation> = {
  operation: Described<O>
  inputOf: (id: string) => Input<O>
  muster: string
}

type Props<O extends Operation> = {
  label: string
  rows: readonly UploadedRow[]
  may_change: boolean
  removal: UploadRemoval<O>
  onContinue: (row: UploadedRow) => void
}

export function UploadTable<O extends Operation>({ label, rows, may_change, removal, onContinue }: Props<O>) {
  const [removed, setRemoved] = useState<UploadedRow | null>(null)
  const columns: Column<UploadedRow>[] = [
    { id: 'name', title: 'Name', sortBy: (row) => row.display_name, cell: (row) => row.display_name },
    {
      id: 'size',
      title: 'Size',
      is_number: true,
      sortBy: (row) => row.content_length,
      cell: (row) => bytes(row.content_length),
      width: 8,
    },
    {
      id: 'state',
      title: 'State',
      cell: (row) => (row.complete ? <Badge tone="good">complete</Badge> : <Badge tone="warn">incomplete</Badge>),
      width: 8,
    },
    {
      id: 'created',
      is_secondary: true,
      title: 'Created',
      sortBy: (row) => row.create_ts,
      cell: (row) => <Ago ts={row.create_ts} />,
      width: 11,
    },
    { id: 'id', is_secondary: true, title: 'Id', cell: (row) => <ShortId id={row.id} />, width: 8 },
  ]
  if (may_change) {
    columns.push({
      id: 'actions',
      title: 'Actions',
      width: 13,
      cell: (row) => (
        <span className="flex gap-1">
          {row.complete ? null : (
            <Button kind="quiet" onClick={() => onContinue(row)} aria-label={`Continue ${row.display_name}`}>
              Continue
            </Button>
          )}
          <Button kind="quiet_danger" onClick={() => setRemoved(row)} aria-label={`Delete ${row.display_name}`}>
            Delete
          </Button>
        </span>
      ),
    })
  }
  return (
    <>
      <DataTable
        label={label}
        rows={rows}
        rowId={(row) => row.id}
        columns={columns}
        empty="Nothing was uploaded yet. The command muster deploy uploads too."
      />
      {removed === null ? null : <RemovalDialog row={removed} removal={removal} onClose={() => setRemoved(null)} />}
    </>
  )
}

type RemovalDialogProps<O extends Operation> = { row: UploadedRow; removal: UploadRemoval<O>; onClose: () => void }

function RemovalDialog<O extends Operation>({ row, removal, onClose }: RemovalDialogProps<O>) {
  const { operation, inputOf, muster } = removal
  return (
    <ActionDialog
      operation={operation}
      input={inputOf(row.id)}
      words={{
        title: `Delete ${row.display_name}`,
        submit: 'Delete',
        done: `${row.display_name} is deleted.`,
        is_danger: true,
      }}
      muster={`${muster} ${row.id}`}
      onClose={onClose}
    >
      <p>Its files are deleted. The platform refuses this while a version uses them.</p>
    </ActionDialog>
  )
}
