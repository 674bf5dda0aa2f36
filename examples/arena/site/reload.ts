// After a deploy an open page is of the version before, and its lobbies may take no more players. The page loads itself again,
// once for each version: a page that came from a cache would do so for ever.
import { tab } from './storage.ts'

const RELOADED_FOR = 'arena.version'

/** Does nothing where the browser keeps nothing for the page. */
export function reloadFor(version_id: string): void {
  if (tab.getItem(RELOADED_FOR) === version_id) return
  tab.setItem(RELOADED_FOR, version_id)
  if (tab.getItem(RELOADED_FOR) === version_id) location.reload()
}
