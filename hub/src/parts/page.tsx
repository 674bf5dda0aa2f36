// The frame of a page: its title, where it is, what can be done, and its content. A section is a titled part of a page.
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useId } from 'react'

export type Crumb = { text: string; to: string }

export type PageProps = {
  title: string
  /** Shown beside the title. */
  mark?: ReactNode
  crumbs?: readonly Crumb[]
  actions?: ReactNode
  lead?: ReactNode
  children: ReactNode
}

export function Page({ title, mark, crumbs = [], actions, lead, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Muster`
  }, [title])
  return (
    <div className="mx-auto flex w-full max-w-7xl min-w-0 flex-col gap-5 px-4 py-5 sm:px-6">
      <header className="flex flex-col gap-1">
        {crumbs.length > 0 ? <Crumbs crumbs={crumbs} /> : null}
        <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
          <div className="flex min-w-0 flex-wrap items-center gap-2">
            <h1 className="wrap-anywhere">{title}</h1>
            {mark}
          </div>
          {actions === undefined ? null : <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
        {lead === undefined ? null : <p className="max-w-3xl text-soft">{lead}</p>}
      </header>
      {children}
    </div>
  )
}

function Crumbs({ crumbs }: { crumbs: readonly Crumb[] }) {
  return (
    <nav aria-label="Path to this page">
      <ol className="flex flex-wrap gap-x-1.5 text-xs text-soft">
        {crumbs.map(({ text, to }) => (
          <li key={to} className="not-last:after:ml-1.5 not-last:after:content-['/']">
            <Link to={to} className="text-soft">
              {text}
            </Link>
          </li>
        ))}
      </ol>
    </nav>
  )
}

export type SectionProps = {
  title: string
  actions?: ReactNode
  lead?: ReactNode
  /** Without a frame around the content. */
  is_bare?: boolean
  children: ReactNode
}

export function Section({ title, actions, lead, is_bare = false, children }: SectionProps) {
  const id = useId()
  const frame = is_bare ? 'min-w-0' : 'min-w-0 rounded-lg border border-line bg-page'
  return (
    <section aria-labelledby={id} className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 id={id}>{title}</h2>
        {actions === undefined ? null : <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {lead === undefined ? null : <p className="max-w-3xl text-soft">{lead}</p>}
      <div className={frame}>{children}</div>
    </section>
  )
}

/** What a list shows when it is empty: why, and what to do. */
export function Empty({ children }: { children: ReactNode }) {
  return <div className="px-4 py-6 text-soft">{children}</div>
}

/** Pairs of a name and a value. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,max-content)_minmax(0,1fr)] gap-x-4 gap-y-1.5 p-4">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-soft">{name}</dt>
          <dd className="min-w-0 wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
