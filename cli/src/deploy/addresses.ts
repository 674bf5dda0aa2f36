// Addresses that a command prints at its end.
import { getBootstrap } from '@musterhost/contract'
import type { Session } from '../session.ts'

/** The namespace whose site has the host of the game alone. */
const MAIN_NAMESPACE = 'prod'

/** The address of the site of a namespace. */
export async function siteUrl(session: Session, game: string, namespace: string): Promise<string> {
  const { domains } = await session.client.call(getBootstrap, {})
  const { protocol, port, hostname } = new URL(session.url)
  const host = namespace === MAIN_NAMESPACE ? game : `${game}--${namespace}`
  return `${protocol}//${host}.${domains?.cdn ?? `cdn.${hostname}`}${port === '' ? '' : `:${port}`}/`
}
