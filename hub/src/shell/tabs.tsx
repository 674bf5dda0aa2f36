// Links between the pages of one game, namespace, group or of the platform.
import { Link } from '@tanstack/react-router'

export type Tab = { text: string; to: string; is_exact?: boolean }

export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav aria-label={label} className="overflow-x-auto border-b border-line bg-page">
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
