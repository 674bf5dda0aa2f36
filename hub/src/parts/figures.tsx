// The main figures of a page, large: a name above each, and what belongs to it below.
import type { ReactNode } from 'react'

export type Figure = {
  name: string
  value: ReactNode
  /** Below the value, small. */
  note?: ReactNode
  /** Something is wrong. */
  is_bad?: boolean
}

export function Figures({ label, figures }: { label: string; figures: readonly Figure[] }) {
  // On a phone, three are one row.
  const columns = figures.length === 3 ? 'grid-cols-3' : 'grid-cols-2'
  return (
    <section aria-label={label}>
      <dl className={`grid ${columns} gap-3 sm:grid-cols-[repeat(auto-fit,minmax(9rem,13rem))]`}>
        {figures.map(({ name, value, note, is_bad = false }) => (
          <div
            key={name}
            className="flex min-w-0 flex-col gap-0.5 rounded-lg border border-line bg-page px-3 py-3 sm:px-4"
          >
            <dt className="text-xs text-soft">{name}</dt>
            <dd
              className={`numbers text-xl leading-tight font-semibold wrap-anywhere sm:text-2xl ${is_bad ? 'text-bad' : ''}`}
            >
              {value}
            </dd>
            {note === undefined ? null : <dd className="numbers text-xs text-soft">{note}</dd>}
          </div>
        ))}
      </dl>
    </section>
  )
}
