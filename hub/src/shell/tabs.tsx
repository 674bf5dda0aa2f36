// Links between the pages of one game, namespace, group or of the platform.
import { Link, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'

export type Tab = { text: string; to: string; is_exact?: boolean }

type TabsProps = {
  label: string
  tabs: readonly Tab[]
  /** Without a line below. */
  is_bare?: boolean
  /** What the links belong to. It stays in view before the links, which scroll. */
  children?: ReactNode
}

export function Tabs({ label, tabs, is_bare = false, children }: TabsProps) {
  const list = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page has another current tab.
  useEffect(() => {
    const current = list.current?.querySelector('[aria-current=page]')
    current?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [pathname])
  return (
    <div className={`bg-page ${is_bare ? '' : 'border-b border-line'}`}>
      <div className="mx-auto flex max-w-7xl items-center gap-2 px-3 sm:px-5">
        {children === undefined ? null : <div className="max-w-40 shrink-0 py-0.5">{children}</div>}
        <nav ref={list} aria-label={label} className="min-w-0 overflow-x-auto">
          <ul className="flex gap-1">
            {tabs.map(({ text, to, is_exact }) => (
              <li key={to}>
                <Link
                  to={to}
                  activeOptions={{ exact: is_exact === true, includeSearch: false }}
                  className="block border-b-2 border-transparent px-2 py-2 whitespace-nowrap text-ink no-underline hover:border-line"
                  activeProps={{ className: 'border-b-2 !border-accent font-semibold', 'aria-current': 'page' }}
                >
                  {text}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      </div>
    </div>
  )
}
