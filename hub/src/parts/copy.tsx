// Copying text, and ids that can be copied.
import { useState } from 'react'
import { showToast } from '../toasts.ts'
import { Button } from './button.tsx'

const COPIED_SHOWN_MS = 1_500

/** A page of a plain http address has no clipboard: then a message says how to copy. */
function useCopy(text: string): { is_copied: boolean; copy: () => void } {
  const [is_copied, setCopied] = useState(false)
  async function write(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), COPIED_SHOWN_MS)
    } catch {
      showToast('bad', 'The browser does not let this page write to the clipboard. Select the text and copy it.')
    }
  }
  return { is_copied, copy: () => void write() }
}

/** `is_large`: as tall as the buttons beside it. */
export function CopyButton({ text, label = 'Copy', is_large }: { text: string; label?: string; is_large?: boolean }) {
  const { is_copied, copy } = useCopy(text)
  if (is_large === true) {
    return (
      <Button onClick={copy}>
        <span aria-live="polite">{is_copied ? 'Copied' : label}</span>
      </Button>
    )
  }
  return (
    <button
      type="button"
      onClick={copy}
      className="cursor-pointer rounded border border-line bg-raised px-1.5 py-0.5 text-xs whitespace-nowrap text-soft hover:bg-code"
    >
      <span aria-live="polite">{is_copied ? 'Copied' : label}</span>
    </button>
  )
}

/** The end of an id, which differs even between ids of the same moment. A click copies the whole id. */
export function ShortId({ id }: { id: string }) {
  const { is_copied, copy } = useCopy(id)
  return (
    <button
      type="button"
      title={`Copy ${id}`}
      className="cursor-copy rounded font-mono text-xs text-soft hover:bg-code"
      onClick={copy}
    >
      {is_copied ? 'copied' : shortId(id)}
    </button>
  )
}

export function shortId(id: string): string {
  return id.slice(-8)
}

/** A command or an address, with its button. */
export function CodeLine({ text, label }: { text: string; label?: string }) {
  return (
    <div className="flex min-w-0 items-start gap-2 rounded-md bg-code p-2">
      {label === undefined ? null : <span className="text-xs text-soft">{label}</span>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre tabIndex={0} className="min-w-0 flex-1 overflow-x-auto whitespace-pre">
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  )
}
