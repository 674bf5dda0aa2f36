// Writing and deleting one key-value entry.
import { useState } from 'react'
import { deleteKvEntry, putKvEntry } from '../../api/operations.gen.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { CopyButton } from '../../parts/copy.tsx'
import { TextArea, TextField } from '../../parts/fields.tsx'

export type KvEntry = { key: string; value?: unknown }

/** `entry`: null for a new one. */
export function EditDialog({
  entry,
  directory,
  namespace_id,
  may_put,
  onClose,
}: {
  entry: KvEntry | null
  directory: string
  namespace_id: string
  may_put: boolean
  onClose: () => void
}) {
  const [key, setKey] = useState(entry?.key ?? (directory === '' ? '' : `${directory.replace(/\/$/, '')}/`))
  const [text, setText] = useState(entry === null ? '{}' : JSON.stringify(entry.value, null, 2))
  const parsed = parse(text)
  return (
    <ActionDialog
      operation={putKvEntry}
      input={{ body: { namespace_id, key, value: 'value' in parsed ? parsed.value : null } }}
      words={{
        title: entry === null ? 'Write an entry' : entry.key,
        submit: 'Write',
        done: 'The entry is written.',
      }}
      is_wide
      is_ready={may_put && key !== '' && 'value' in parsed}
      onClose={onClose}
    >
      {entry === null ? (
        <TextField label="Key" value={key} onChange={setKey} autoComplete="off" spellCheck={false} />
      ) : (
        <p>
          <code className="wrap-anywhere">{key}</code> <CopyButton text={key} label="Copy key" />
        </p>
      )}
      <TextArea
        label="Value (JSON)"
        rows={14}
        value={text}
        readOnly={!may_put}
        spellCheck={false}
        onChange={setText}
        {...('error' in parsed ? { error: parsed.error } : {})}
      />
    </ActionDialog>
  )
}

export function DeleteDialog({
  name,
  namespace_id,
  onClose,
}: {
  name: string
  namespace_id: string
  onClose: () => void
}) {
  return (
    <ActionDialog
      operation={deleteKvEntry}
      input={{ query: { key: name, namespace_id } }}
      words={{ title: 'Delete this entry?', submit: 'Delete', done: 'The entry is deleted.', is_danger: true }}
      onClose={onClose}
    >
      <p className="wrap-anywhere">
        <code>{name}</code> is deleted at once. Its value cannot be restored.
      </p>
    </ActionDialog>
  )
}

function parse(text: string): { value: unknown } | { error: string } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { error: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}
