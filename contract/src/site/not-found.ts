// Which file a site serves at an unknown path: its 404.html, or its index.html where the version says so.
import type { NotFound } from '../version-config.ts'

/** A file of the site, and the status that it is served with. */
export type Substitute = { path: string; status: 200 | 404 }

/** Programs request these and judge by the status. On the main domain the second is the route to a lobby. */
const NO_PAGE = /^(?:\.well-known|lobbies\/[0-9a-f-]{36})(?:\/|$)/

/** `path`: without a leading slash. `not_found`: from the version config. The site may lack the file. */
export function substituteOf(path: string, not_found: NotFound | null): Substitute {
  const is_application = not_found === 'index.html' && !NO_PAGE.test(path)
  return is_application ? { path: 'index.html', status: 200 } : { path: '404.html', status: 404 }
}
