// Every action of the hub as a command: the `muster` form where the command line has one, and `curl` always.
import type { Operation } from '@musterhost/contract'
import { useState } from 'react'
import { type AnyInput, addressOf, type Input } from '../api/call.ts'
import type { Described } from '../api/describe.ts'
import { Button } from './button.tsx'
import { CodeLine } from './copy.tsx'
import { Dialog } from './lazy-dialogs.tsx'

export type CopyAsProps<O extends Operation> = {
  operation: Described<O>
  input: Input<O>
  /** The same by the command line, without the leading `muster`. */
  muster?: string
  label?: string
}

export function CopyAs<O extends Operation>({ operation, input, muster, label = 'Copy as …' }: CopyAsProps<O>) {
  const [is_open, setOpen] = useState(false)
  return (
    <>
      {/* Its text, and not its frame, ends at the edge of what is beside it. */}
      <span className="-mx-1.5 inline-flex">
        <Button kind="quiet" onClick={() => setOpen(true)}>
          {label}
        </Button>
      </span>
      {is_open ? (
        <Dialog title={`As a command: ${operation.id}`} is_wide onClose={() => setOpen(false)}>
          {muster === undefined ? null : <CodeLine text={`muster ${muster}`} />}
          <CodeLine text={curlOf(operation as Described, input as AnyInput)} />
          <p className="text-xs text-soft">
            Set <code>MUSTER_TOKEN</code> to an access token or a cloud token first. The{' '}
            <a href={`/docs/api#${operation.id}`}>reference</a> describes each member.
          </p>
        </Dialog>
      ) : null}
    </>
  )
}

/** A command line for a POSIX shell. Everything from a name is quoted. */
export function curlOf(operation: Described, input: AnyInput): string {
  const lines = [
    `curl${operation.method === 'GET' ? '' : ` -X ${operation.method}`} ${quoted(location.origin + addressOf(operation, input))}`,
  ]
  lines.push(`  -H "Authorization: Bearer $MUSTER_TOKEN"`)
  if (input.body !== undefined) {
    lines.push("  -H 'Content-Type: application/json'")
    lines.push(`  -d ${quoted(JSON.stringify(input.body))}`)
  }
  return lines.join(' \\\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
