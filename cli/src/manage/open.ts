// Addresses of a game: printed, and opened in the browser on a terminal.
import { getGames } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import { openBrowser } from '../open-browser.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

export type PageName = 'site' | 'docs' | 'api'

export async function openPage(
  terminal: Terminal,
  page: PageName,
  options: GlobalOptions & { browser: boolean },
): Promise<void> {
  const session = await openSession(terminal, options)
  const url = page === 'site' ? await siteUrl(session) : `${session.url}/docs${page === 'api' ? '/api' : ''}`
  if (terminal.is_json) return terminal.json({ url })
  terminal.print(url)
  if (options.browser && terminal.is_interactive) await openBrowser(terminal, url)
}

/** The site of `prod` has the name of its game, others also the name of their namespace. */
async function siteUrl(session: Session): Promise<string> {
  const [{ game_id, name_id }, namespace] = [await session.game(), await session.namespace()]
  const { games } = await session.client.call(getGames, {})
  const url = games.find((game) => game.game_id === game_id)?.url
  if (url === undefined) {
    throw new Failure(`The platform does not say where the site of ${name_id} is.`, { exit_code: EXIT.failed })
  }
  if (namespace.name_id === 'prod') return url
  const address = new URL(url)
  address.hostname = address.hostname.replace(name_id, `${name_id}--${namespace.name_id}`)
  return address.href
}
