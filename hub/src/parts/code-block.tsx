// Text in the form of a program, which scrolls within its frame.
import type { ReactNode } from 'react'

export function CodeBlock({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y: what scrolls must be reachable by keyboard, and it is no form.
    <div role="group" tabIndex={0} aria-label={label} className="max-h-[60vh] overflow-auto p-4">
      <pre>{children}</pre>
    </div>
  )
}
