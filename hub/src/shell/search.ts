// State of a page in the query of its address: a link to the page then shows the same view, and Back returns to the one before.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'

/** `is_step`: Back returns to the value before. Text that is being typed is no step. */
type SetSearch<S> = (changes: Partial<S>, is_step?: boolean) => void

/** `defaults`: the members and their values when the address does not name them. It must be a constant of its module. */
export function useSearchState<S extends Record<string, string>>(defaults: S): [state: S, set: SetSearch<S>] {
  const search: Record<string, unknown> = useSearch({ strict: false })
  const navigate = useNavigate()
  const given = JSON.stringify(Object.keys(defaults).map((name) => textOf(search[name])))
  const state = useMemo(() => {
    const values = JSON.parse(given) as (string | null)[]
    return Object.fromEntries(Object.keys(defaults).map((name, at) => [name, values[at] ?? defaults[name]])) as S
  }, [given, defaults])
  const set = useCallback<SetSearch<S>>(
    (changes, is_step = true) => {
      void navigate({
        to: '.',
        search: ((before: Record<string, unknown>) => withoutDefaults({ ...before, ...changes }, defaults)) as never,
        replace: !is_step,
        resetScroll: false,
      })
    },
    [navigate, defaults],
  )
  return [state, set]
}

/** The router reads numbers and booleans from an address as such. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
}

function withoutDefaults(search: Record<string, unknown>, defaults: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(search).filter(([name, value]) => value !== undefined && value !== defaults[name]),
  )
}
