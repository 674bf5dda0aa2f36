// Where files are dropped or chosen, and the bars of an upload.
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import type { CallError } from '../../api/call-error.ts'
import { Button } from '../../parts/button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Failure, Notice } from '../../parts/notice.tsx'
import { bytes, plural } from '../../parts/numbers.ts'
import { showToast } from '../../toasts.ts'
import { filesOfDrop, filesOfInput, type LocalFile } from './local-files.ts'
import type { UploadRow, UploadState } from './use-upload.ts'

export type DropZoneProps = {
  /** What is dropped here. */
  label: string
  is_folder: boolean
  accept?: string
  onFiles: (files: LocalFile[]) => void
}

export function DropZone({ label, is_folder, accept, onFiles }: DropZoneProps) {
  const input = useRef<HTMLInputElement>(null)
  const [is_over, setOver] = useState(false)
  function take(event: DragEvent): void {
    event.preventDefault()
    setOver(false)
    filesOfDrop(event.dataTransfer).then(onFiles, (error: Error) => showToast('bad', error.message))
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut of the button inside.
    <div
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={take}
      className={`flex flex-col items-center gap-2 rounded-lg border-2 border-dashed p-6 text-center ${is_over ? 'border-accent bg-mark' : 'border-line'}`}
    >
      <p>{label}</p>
      <Button onClick={() => input.current?.click()}>Choose {is_folder ? 'a folder' : 'a file'}</Button>
      <input
        ref={input}
        type="file"
        aria-label={label}
        className="sr-only"
        tabIndex={-1}
        accept={accept}
        {...(is_folder ? { webkitdirectory: '' } : {})}
        onChange={(event) => {
          const { files } = event.target
          if (files !== null && files.length > 0) onFiles(filesOfInput(files))
          event.target.value = ''
        }}
      />
    </div>
  )
}

type BarsProps = {
  state: Exclude<UploadState, { kind: 'none' }>
  onPause: () => void
  onContinue: (upload_id: string) => void
  onClose: () => void
}

export function UploadBars({ state, onPause, onContinue, onClose }: BarsProps) {
  const { kind, rows } = state
  const sent = rows.reduce((sum, row) => sum + row.sent, 0)
  const length = rows.reduce((sum, row) => sum + row.length, 0)
  const upload_id = kind === 'failed' ? state.upload_id : null
  const text = `${plural(rows.length, 'file')}, ${bytes(sent)} of ${bytes(length)}`
  return (
    <div className="flex flex-col gap-3 p-4">
      <p role="status">{kind === 'preparing' ? `Reading ${plural(rows.length, 'file')} …` : text}</p>
      <Bar label="All files" value={sent} max={length} />
      {rows.length > 1 ? <FileBars rows={rows} /> : null}
      {kind === 'failed' ? <Broken error={state.error} /> : null}
      <div className="flex gap-2">
        {kind === 'sending' ? <Button onClick={onPause}>Pause</Button> : null}
        {upload_id === null ? null : (
          <Button kind="primary" onClick={() => onContinue(upload_id)}>
            Continue
          </Button>
        )}
        {kind === 'complete' || kind === 'failed' ? <Button onClick={onClose}>Close</Button> : null}
      </div>
    </div>
  )
}

function Broken({ error }: { error: CallError }): ReactNode {
  if (error.code === 'CANCELLED') return <Notice>Paused. What has arrived is kept.</Notice>
  return <Failure error={error} />
}

function FileBars({ rows }: { rows: readonly UploadRow[] }) {
  return (
    <div className="max-h-80 overflow-y-auto rounded-md border border-line">
      <DataTable
        label="Files"
        rows={rows}
        rowId={(row) => row.path}
        empty=""
        columns={[
          { id: 'path', title: 'File', cell: (row) => <span className="wrap-anywhere">{row.path}</span> },
          { id: 'size', title: 'Size', is_number: true, cell: (row) => bytes(row.length), width: 7 },
          {
            id: 'bar',
            title: 'Sent',
            cell: (row) => <Bar label={row.path} value={row.sent} max={row.length} />,
            width: 12,
          },
        ]}
      />
    </div>
  )
}

function Bar({ label, value, max }: { label: string; value: number; max: number }) {
  return (
    <progress
      aria-label={label}
      value={max === 0 ? 1 : value}
      max={max === 0 ? 1 : max}
      className="h-2 w-full accent-accent"
    />
  )
}
