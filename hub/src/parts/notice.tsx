// Notices: an error of a call with its ray, a warning, something that loads.
import type { ReactNode } from 'react'
import type { CallError } from '../api/call-error.ts'
import { Button } from './button.tsx'
import { CodeBlock } from './code-block.tsx'

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

const BOXES: Record<Tone, string> = {
  good: 'border-good bg-good-page',
  warn: 'border-warn bg-warn-page',
  bad: 'border-bad bg-bad-page',
  plain: 'border-line bg-raised',
}
const TEXTS: Record<Tone, string> = {
  good: 'text-good bg-good-page',
  warn: 'text-warn bg-warn-page',
  bad: 'text-bad bg-bad-page',
  plain: 'text-soft bg-code',
}

export function Notice({
  tone = 'plain',
  actions,
  children,
}: {
  tone?: Tone
  actions?: ReactNode
  children: ReactNode
}) {
  return (
    <div className={`flex flex-wrap items-center justify-between gap-3 rounded-lg border-l-4 px-4 py-3 ${BOXES[tone]}`}>
      <div className="min-w-0 wrap-anywhere">{children}</div>
      {actions}
    </div>
  )
}

/** A word with a colour. The word says it all: the colour only helps to find it. */
export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-block rounded px-1.5 py-0.5 text-xs font-medium max-w-full wrap-break-word sm:whitespace-nowrap ${TEXTS[tone]}`}
    >
      {children}
    </span>
  )
}

export function Loading({ what = 'Loading' }: { what?: string }) {
  return (
    <p role="status" className="px-4 py-6 text-soft">
      {what} …
    </p>
  )
}

export function Failure({ error, onRepeat }: { error: CallError; onRepeat?: () => void }) {
  return (
    <div role="alert">
      <Notice
        tone="bad"
        actions={
          onRepeat !== undefined && error.is_temporary ? <Button onClick={onRepeat}>Try again</Button> : undefined
        }
      >
        <p>{error.message}</p>
        {error.details.map(({ path, message }) => (
          <p key={path.join('.')}>
            <code>{path.join('.')}</code>: {message}
          </p>
        ))}
        <LogLines lines={error.log_lines} />
        <p className="text-xs">
          {error.documentation === null ? null : (
            <>
              <a href={error.documentation}>{error.code}</a>{' '}
            </>
          )}
          {error.ray_id === null ? null : (
            <>
              ray <code>{error.ray_id}</code>
            </>
          )}
        </p>
      </Notice>
    </div>
  )
}

/** The last lines of a log; nothing without one. */
export function LogLines({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null
  return (
    <div className="my-2 rounded-md bg-code text-ink">
      <CodeBlock label="The last lines of its log">
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines may repeat, and are replaced together.
          <span key={index} className="block">
            {line}
          </span>
        ))}
      </CodeBlock>
    </div>
  )
}

export type Read = { error: CallError | null; isPending: boolean; refetch: () => unknown }

/** What stands in for content that is not there yet: loading, or the error. Null when there is data. */
export function Pending({ read, what }: { read: Read; what?: string }) {
  if (read.error !== null) return <Failure error={read.error} onRepeat={() => void read.refetch()} />
  if (read.isPending) return what === undefined ? <Loading /> : <Loading what={what} />
  return null
}
