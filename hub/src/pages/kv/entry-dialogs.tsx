// Writing and deleting one key-value entry.
import { useState } from 'react'
import { deleteKvEntry, putKvEntry } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { CopyButton } from '../../parts/copy.tsx'
import { TextArea, TextField } from '../../parts/fields.tsx'
import { ConfirmDialog, FormDialog } from '../../parts/lazy-dialogs.tsx'

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
  const put = useChange(putKvEntry, { done: 'The entry is written.', onDone: onClose, shows_errors: true })
  const parsed = parse(text)
  return (
    <FormDialog
      title={entry === null ? 'Write an entry' : entry.key}
      submit="Write"
      is_wide
      is_busy={put.isPending}
      is_ready={may_put && key !== '' && 'value' in parsed}
      error={put.error}
      onSubmit={() => {
        if ('value' in parsed) put.mutate({ body: { namespace_id, key, value: parsed.value } })
      }}
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
    </FormDialog>
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
  const remove = useChange(deleteKvEntry, { done: 'The entry is deleted.', onDone: onClose, shows_errors: true })
  return (
    <ConfirmDialog
      title="Delete this entry?"
      submit="Delete"
      is_danger
      is_busy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate({ query: { key: name, namespace_id } })}
      onClose={onClose}
    >
      <p className="wrap-anywhere">
        <code>{name}</code> is deleted at once. Its value cannot be restored.
      </p>
    </ConfirmDialog>
  )
}

function parse(text: string): { value: unknown } | { error: string } {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { error: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}
