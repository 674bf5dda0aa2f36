// Links between the pages of one game, namespace, group or of the platform.
import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

export type Tab = { text: string; to: string; is_exact?: boolean }

export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const list = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page has another current tab.
  useEffect(() => {
    const current = list.current?.querySelector('[aria-current=page]')
    current?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [pathname])
  return (
    <nav ref={list} aria-label={label} className="overflow-x-auto border-b border-line bg-page">
      <ul className="mx-auto flex max-w-7xl gap-1 px-3 sm:px-5">
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
  )
}
