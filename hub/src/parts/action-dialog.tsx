// A dialog for one change: it asks, calls the operation, and closes. An error stays in it.
import type { Operation, ResponseOf } from '@musterhost/contract'
import { type ReactNode, useState } from 'react'
import type { Input } from '../api/call.ts'
import type { CallError } from '../api/call-error.ts'
import type { Described } from '../api/describe.ts'
import { useChange } from '../api/queries.ts'
import { CopyAs } from './copy-as.tsx'
import { TextField } from './fields.tsx'
import { FormDialog } from './lazy-dialogs.tsx'

export type ActionWords<O extends Operation> = {
  title: string
  submit: string
  /** The toast after success. None: the page itself shows the result. */
  done?: string | ((response: ResponseOf<O>) => string)
  is_danger?: boolean
}

export type ActionDialogProps<O extends Operation> = {
  operation: Described<O>
  input: Input<O>
  words: ActionWords<O>
  /** The same by the command line, without the leading `muster`. Null: only `curl` is offered. Absent: no command is. */
  muster?: string | null
  /** The name that the person must type first. */
  typed_name?: string
  is_ready?: boolean
  is_wide?: boolean
  /** Runs after success. Without it the dialog closes. */
  onDone?: (response: ResponseOf<O>) => void
  onClose: () => void
  /** What happens and cannot be undone, or the fields of the form. A function gets the outcome of the call. */
  children: ReactNode | ((outcome: { error: CallError | null; data: ResponseOf<O> | undefined }) => ReactNode)
}

export function ActionDialog<O extends Operation>(props: ActionDialogProps<O>) {
  const { operation, input, words, muster, typed_name, is_ready = true, is_wide = false, onClose, children } = props
  const { title, submit, done, is_danger = false } = words
  const [name, setName] = useState('')
  const change = useChange(operation, {
    ...(done === undefined ? {} : { done }),
    onDone: props.onDone ?? onClose,
    shows_errors: true,
  })
  return (
    <FormDialog
      title={title}
      submit={submit}
      is_danger={is_danger}
      is_wide={is_wide}
      is_busy={change.isPending}
      is_ready={is_ready && (typed_name === undefined || name === typed_name)}
      error={change.error}
      onSubmit={() => change.mutate(input)}
      onClose={onClose}
    >
      {typeof children === 'function' ? children(change) : children}
      {muster === undefined ? null : (
        <div>
          <CopyAs operation={operation} input={input} {...(muster === null ? {} : { muster })} />
        </div>
      )}
      {typed_name === undefined ? null : (
        <TextField label={`Type “${typed_name}” to confirm`} value={name} onChange={setName} autoComplete="off" />
      )}
    </FormDialog>
  )
}
