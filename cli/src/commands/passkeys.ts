// Commands on passkeys.
import type { Command } from 'commander'
import type { RemovalOptions } from '../manage/removal.ts'
import { type GlobalOptions, withPlatform } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

export function addPasskeyCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/passkeys.ts')
  const passkeys = program
    .command('passkeys')
    .description('Passkeys of people, for administrators. People add and remove their own in the hub.')
  withRemoval(withPlatform(passkeys.command('remove')))
    .description('Remove all passkeys of a person who has lost them.')
    .argument('<user-id>', 'id of the person, as the account page, members list and the audit log show it')
    .action(async (user_id: string, options: GlobalOptions & RemovalOptions) =>
      (await load()).removePasskeys(terminal, user_id, options),
    )
}
