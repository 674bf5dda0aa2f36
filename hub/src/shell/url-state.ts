// State of a page that is kept in the query of its address, so that a link shares the view and Back works.
import { useNavigate, useSearch } from '@tanstack/react-router'

export type UrlState<K extends string> = Record<K, string>

/** The router writes other text that reads as a number between quotes. */
const WHOLE_NUMBER = /^(0|[1-9]\d{0,14})$/

/** The named parameters as text; empty when absent. An empty value removes its parameter. */
export function useUrlState<K extends string>(
  names: readonly K[],
): [UrlState<K>, (changed: Partial<UrlState<K>>, how?: { is_step?: boolean }) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const navigate = useNavigate()
  const state = Object.fromEntries(names.map((name) => [name, textOf(search[name])])) as UrlState<K>
  /** `is_step`: Back returns to the state before. Default: true. */
  function change(changed: Partial<UrlState<K>>, { is_step = true }: { is_step?: boolean } = {}): void {
    const next: Record<string, unknown> = { ...search }
    for (const [name, value] of Object.entries(changed)) {
      if (value === '' || value === undefined) delete next[name]
      else next[name] = WHOLE_NUMBER.test(String(value)) ? Number(value) : value
    }
    void navigate({ to: '.', search: next, replace: !is_step, resetScroll: false } as never)
  }
  return [state, change]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : String(value)
}
