// The nodes of a platform: invitations, and joining.
import type { Command } from 'commander'
import type { InviteOptions } from '../manage/nodes.ts'
import { type GlobalOptions, parseDurationUpTo, withPlatform } from '../options.ts'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

/** Days that an invitation may be valid. */
const TTL_DAYS_MAX = 7

export function addNodeCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/nodes.ts')
  const nodes = program.command('nodes').description('The machines of a platform.')
  withPlatform(nodes.command('invite'))
    .description('Invite another machine to run lobbies. Prints the command for that machine.')
    .option('--name <name>', 'name of the node; default: a random one')
    .option('--region <region>', 'region whose lobbies it runs; default: the only one')
    .option('--ttl <duration>', 'how long the invitation is valid (default: 15m)', parseDurationUpTo(TTL_DAYS_MAX))
    .action(async (options: InviteOptions) => (await load()).inviteNode(terminal, options))
  withPlatform(nodes.command('invitations'))
    .description('List the invitations: open, used, expired and revoked.')
    .action(async (options: GlobalOptions) => (await load()).listInvitations(terminal, options))
  withPlatform(nodes.command('uninvite'))
    .description('Revoke an invitation that no machine has used.')
    .argument('<invitation>', 'the id of the invitation')
    .action(async (invitation: string, options: GlobalOptions) =>
      (await load()).revokeInvitation(terminal, invitation, options),
    )
}

export function addJoinCommand(program: Command, terminal: Terminal): void {
  const { env } = terminal
  program
    .command('join')
    .description('Join a platform with this machine, and run lobbies for it. "muster start" continues later.')
    .argument('<url>', 'the address of the platform')
    .argument('<invitation>', 'the invitation, which "muster nodes invite" prints')
    .addHelpText(
      'after',
      '\nThe node keeps its data in MUSTER_DATA. It connects to the platform; nothing connects to it.',
    )
    .action((url: string, invitation: string) =>
      onPlatformNode(env, async () => {
        terminal.outlives_output = true
        const { supervise } = await import('@muster/server/supervisor')
        await supervise(env, { url, invitation })
      }),
    )
}
