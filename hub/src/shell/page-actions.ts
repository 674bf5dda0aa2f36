// What the open page can do, for the command palette.
import { useEffect, useSyncExternalStore } from 'react'

export type PageAction = {
  id: string
  title: string
  run: () => void
  /** The key that does the same in its part of the page, for the list of shortcuts. */
  keys?: string
}

let actions: readonly PageAction[] = []
const listeners = new Set<() => void>()

function setActions(next: readonly PageAction[]): void {
  actions = next
  for (const listener of listeners) listener()
}

/** Adds actions to the palette while the component is shown. Only a change of their ids or titles adds them anew. */
export function usePageActions(own: readonly PageAction[]): void {
  const key = own.map(({ id, title }) => `${id} ${title}`).join('\n')
  // biome-ignore lint/correctness/useExhaustiveDependencies: callers pass a new list at each render; `key` says when it differs.
  useEffect(() => {
    setActions([...actions, ...own])
    return () => setActions(actions.filter((action) => !own.includes(action)))
  }, [key])
}

export function useAllPageActions(): readonly PageAction[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => actions,
  )
}
