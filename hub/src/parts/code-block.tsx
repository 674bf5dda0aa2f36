// Text in the form of a program. It scrolls within its frame; a phone breaks its long lines.
import type { ReactNode } from 'react'

export function CodeBlock({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y: what scrolls must be reachable by keyboard, and it is no form.
    <div role="group" tabIndex={0} aria-label={label} className="max-h-[60vh] overflow-auto p-4">
      <pre className="max-sm:whitespace-pre-wrap max-sm:wrap-anywhere">{children}</pre>
    </div>
  )
}
