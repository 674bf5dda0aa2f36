// Dialogs. React Aria keeps the focus inside, closes them by Escape, and hides the page behind from screen readers. The module
// is loaded with the first dialog.
import type { FormEvent, ReactNode } from 'react'
import { Heading, Modal, ModalOverlay, Dialog as RacDialog } from 'react-aria-components'
import type { CallError } from '../api/call-error.ts'
import { Button } from './button.tsx'
import { useFocusAfterwards } from './focus.ts'
import { Failure } from './notice.tsx'

export type DialogProps = { title: string; onClose: () => void; is_wide?: boolean; children: ReactNode }

export function Dialog({ title, onClose, is_wide = false, children }: DialogProps) {
  useFocusAfterwards()
  return (
    <ModalOverlay
      isOpen
      isDismissable
      onOpenChange={(is_open) => (is_open ? undefined : onClose())}
      className="fixed inset-0 z-40 flex items-start justify-center overflow-y-auto bg-[#0008] p-3 pt-[8vh]"
    >
      <Modal
        className={`w-full ${is_wide ? 'max-w-4xl' : 'max-w-lg'} rounded-xl border border-line bg-page shadow-2xl outline-none`}
      >
        <RacDialog className="flex flex-col gap-4 p-5 outline-none">
          <div className="flex items-center justify-between gap-4">
            <Heading slot="title" className="text-base font-semibold">
              {title}
            </Heading>
            <Button kind="quiet" onClick={onClose} aria-label="Close">
              ✕
            </Button>
          </div>
          {children}
        </RacDialog>
      </Modal>
    </ModalOverlay>
  )
}

export type FormDialogProps = {
  title: string
  submit: string
  is_danger?: boolean
  is_wide?: boolean
  is_busy: boolean
  is_ready?: boolean
  error: CallError | null
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
}

/** A dialog with a form: Enter submits it, and an error stays in it. */
export function FormDialog(props: FormDialogProps) {
  const {
    title,
    submit,
    is_danger = false,
    is_wide = false,
    is_busy,
    is_ready = true,
    error,
    onSubmit,
    onClose,
    children,
  } = props
  function send(event: FormEvent): void {
    event.preventDefault()
    if (is_ready && !is_busy) onSubmit()
  }
  return (
    <Dialog title={title} onClose={onClose} is_wide={is_wide}>
      <form className="flex flex-col gap-4" onSubmit={send}>
        {children}
        {error === null ? null : <Failure error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={is_danger ? 'danger' : 'primary'} is_busy={is_busy} disabled={!is_ready}>
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
