// Passkeys of other people. People make and remove their own in the hub: a command has no authenticator.
import { removePasskeysOf } from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export async function removePasskeys(
  terminal: Terminal,
  user_id: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  const what = `Remove all passkeys of ${user_id}? Sessions that were opened with them end.`
  await confirmRemoval(terminal, what, options)
  const removed = await session.client.call(removePasskeysOf, { params: { user_id } })
  if (terminal.is_json) return terminal.json(removed)
  terminal.note(`Removed ${removed.removed_count} passkeys. ${removed.ended_count} sessions ended.`)
}
