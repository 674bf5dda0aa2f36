// The form that renames a record.
import { type ReactNode, useState } from 'react'
import type { CallError } from '../api/call-error.ts'
import { Button } from '../parts/button.tsx'
import { TextField } from '../parts/fields.tsx'
import { Failure } from '../parts/notice.tsx'
import { Section } from '../parts/page.tsx'
import { errorAt } from './forms.ts'

type Props = {
  name: string
  length_max: number
  is_busy: boolean
  error: CallError | null
  onSubmit: (display_name: string) => void
  copyAs: (display_name: string) => ReactNode
}

export function RenameForm({ name, length_max, is_busy, error, onSubmit, copyAs }: Props) {
  const [display_name, setName] = useState(name)
  return (
    <Section title="Name">
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit(display_name)
        }}
      >
        <div className="max-w-md">
          <TextField
            label="Display name"
            required
            maxLength={length_max}
            value={display_name}
            onChange={setName}
            error={errorAt(error, 'display_name')}
          />
        </div>
        {error === null ? null : <Failure error={error} />}
        <div className="flex gap-2">
          <Button type="submit" kind="primary" is_busy={is_busy} disabled={display_name === name}>
            Rename
          </Button>
          {copyAs(display_name)}
        </div>
      </form>
    </Section>
  )
}
