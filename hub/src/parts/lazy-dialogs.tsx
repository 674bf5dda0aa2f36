// The dialogs for pages: they look the same, and load React Aria when the first one opens.
import { lazy, Suspense } from 'react'
import type { DialogProps, FormDialogProps } from './dialog.tsx'

const load = () => import('./dialog.tsx')
const LazyDialog = lazy(async () => ({ default: (await load()).Dialog }))
const LazyForm = lazy(async () => ({ default: (await load()).FormDialog }))

export function Dialog(props: DialogProps) {
  return (
    <Suspense>
      <LazyDialog {...props} />
    </Suspense>
  )
}

export function FormDialog(props: FormDialogProps) {
  return (
    <Suspense>
      <LazyForm {...props} />
    </Suspense>
  )
}
