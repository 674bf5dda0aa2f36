// The nodes of a platform: list, drain and remove them, invitations, and joining.
import { type Command, InvalidArgumentError } from 'commander'
import type { InviteOptions, NodeRole } from '../manage/node-invitations.ts'
import { type GlobalOptions, parseDurationUpTo, withPlatform } from '../options.ts'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

/** Days that an invitation may be valid. */
const TTL_DAYS_MAX = 7
const NODE_ROLES = ['runner', 'edge'] as const
/** Days until the deadline of a drain. */
const DEADLINE_DAYS_MAX = 30

export function addNodeCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/nodes.ts')
  const loadInvitations = () => import('../manage/node-invitations.ts')
  const nodes = program.command('nodes').description('The machines of a platform.')
  withPlatform(nodes.command('list', { isDefault: true }))
    .description('List the nodes with their load. For administrators.')
    .action(async (options: GlobalOptions) => (await load()).showNodes(terminal, options))
  withPlatform(nodes.command('drain'))
    .description(
      'Take a node out of service without disconnecting players: it gets no new lobbies, and empty ones end.',
    )
    .argument('<node>', 'as nodes list shows it')
    .option('--at-match-end', 'its lobbies take no new players, and end when they are empty')
    .option(
      '--deadline <time>',
      'end the remaining lobbies after this time, for example 2h',
      parseDurationUpTo(DEADLINE_DAYS_MAX),
    )
    .option('--wait', 'wait until no lobby is left, and show how many there are')
    .option('--cancel', 'cancel the drain: the node gets lobbies again')
    .action(async (node: string, options) => (await load()).drain(terminal, node, options))
  withPlatform(nodes.command('remove'))
    .description('Remove a node for good. It is refused while the node runs lobbies.')
    .argument('<node>', 'as nodes list shows it')
    .option('--force', 'end the lobbies that it still runs')
    .option('-y, --yes', 'do not ask')
    .action(async (node: string, options) => (await load()).remove(terminal, node, options))
  withPlatform(nodes.command('invite'))
    .description('Invite another machine to run lobbies, or to serve players. Prints the command for that machine.')
    .option('--name <name>', 'name of the node; default: a random one')
    .option('--region <region>', 'region whose lobbies it runs; default: the only one')
    .option('--roles <roles>', 'runner, edge, or both: what it does (default: runner)', parseRoles)
    .option('--ttl <duration>', 'how long the invitation is valid (default: 15m)', parseDurationUpTo(TTL_DAYS_MAX))
    .action(async (options: InviteOptions) => (await loadInvitations()).inviteNode(terminal, options))
  withPlatform(nodes.command('invitations'))
    .description('List the invitations: open, used, expired and revoked.')
    .action(async (options: GlobalOptions) => (await loadInvitations()).listInvitations(terminal, options))
  withPlatform(nodes.command('uninvite'))
    .description('Revoke an invitation that no machine has used.')
    .argument('<invitation>', 'the id of the invitation')
    .action(async (invitation: string, options: GlobalOptions) =>
      (await loadInvitations()).revokeInvitation(terminal, invitation, options),
    )
}

function parseRoles(text: string): NodeRole[] {
  const roles = text.split(',').map((role) => role.trim())
  const known = NODE_ROLES.filter((role) => roles.includes(role))
  if (known.length === 0 || known.length < roles.length) {
    throw new InvalidArgumentError(`Expected ${NODE_ROLES.join(', ')}, or both separated by a comma.`)
  }
  return known
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
        const { supervise } = await import('@musterhost/server/supervisor')
        await supervise(env, { url, invitation })
      }),
    )
}
