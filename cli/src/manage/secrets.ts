// Secrets of a game: environment variables of its lobbies. The platform never returns a value, so none is printed.
import { listGameSecrets, removeGameSecret, setGameSecret } from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

/** Where a secret holds. `namespace_id`: absent: in all namespaces. */
type Scope = { game_id: string; namespace: { namespace_id?: string }; where: string }

export async function listSecrets(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id, namespaces } = await session.gameFull()
  const { secrets } = await session.client.call(listGameSecrets, { params: { game_id } })
  terminal.note(`Secrets of ${name_id} at ${session.url}`)
  if (terminal.is_json) return terminal.json({ secrets })
  const nameOf = (namespace_id: string | undefined): string =>
    namespace_id === undefined
      ? 'all'
      : (namespaces.find((namespace) => namespace.namespace_id === namespace_id)?.name_id ?? namespace_id)
  printTable(
    terminal,
    secrets,
    [
      { title: 'NAME', text: ({ name }) => name, is_whole: true },
      { title: 'NAMESPACE', text: ({ namespace_id }) => nameOf(namespace_id) },
      { title: 'SET', text: ({ update_ts }) => ago(terminal, update_ts) },
    ],
    'The game has no secret. Set one: muster secrets set PAYMENT_KEY',
  )
}

export async function setSecret(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const value = await terminal.readSecret(`The value of ${name}`)
  const session = await openSession(terminal, options)
  const { game_id, namespace, where } = await scopeOf(session, options)
  await session.client.call(setGameSecret, { params: { game_id, name }, body: { value, ...namespace } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Set ${name} in ${where}. Lobbies that start from now on have it; running ones keep what they have.`)
}

export async function removeSecret(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, namespace, where } = await scopeOf(session, options)
  await confirmRemoval(terminal, `Remove ${name} from ${where}? Its value cannot be restored.`, options)
  await session.client.call(removeGameSecret, { params: { game_id, name }, query: namespace })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${name} from ${where}. Running lobbies keep it.`)
}

async function scopeOf(session: Session, options: GlobalOptions): Promise<Scope> {
  const { game_id, name_id } = await session.game()
  if (options.namespace === undefined) {
    return { game_id, namespace: {}, where: `all namespaces of ${name_id} at ${session.url}` }
  }
  const namespace = await session.namespace()
  const where = `${name_id}/${namespace.name_id} at ${session.url}`
  return { game_id, namespace: { namespace_id: namespace.namespace_id }, where }
}
