// games, namespaces, groups and members.
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { GroupOptions } from '../manage/groups.ts'
import type { RemovalOptions } from '../manage/removal.ts'
import {
  type GlobalOptions,
  parseDuration,
  parseDurationUpTo,
  parseWhole,
  withGame,
  withNamespace,
  withPlatform,
} from '../options.ts'
import type { Terminal } from '../terminal.ts'

type Removal = GlobalOptions & RemovalOptions

const ROLES = ['developer', 'viewer'] as const
/** As in the contract, which is loaded later. */
const INVITE_USES_MAX = 256
const INVITE_DAYS_MAX = 365

export function addGameCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/games.ts')
  const games = program.command('games').description('The games of the platform that you may see.')
  withPlatform(games.command('list', { isDefault: true }))
    .description('List the games.')
    .action(async (options: GlobalOptions) => (await load()).listGames(terminal, options))
  withGame(games.command('get'))
    .description('Show a game with its namespaces.')
    .argument('[game]', 'name or id; default --game')
    .action(async (game: string | undefined, options: GlobalOptions) => (await load()).getGame(terminal, game, options))
  withPlatform(games.command('create'))
    .description('Create a game. It has the namespaces prod and staging.')
    .argument('<name>', 'short name, part of the address of the site: arena')
    .option('--display-name <text>', 'name for people; default: the short name')
    .option('--group <name>', 'the group that develops the game; default: the only one')
    .action(async (name: string, options: GlobalOptions) => (await load()).addGame(terminal, name, options))
  withPlatform(games.command('rename'))
    .description('Change the display name of a game.')
    .argument('<game>', 'name or id')
    .argument('<display-name>', 'name for people')
    .action(async (game: string, text: string, options: GlobalOptions) =>
      (await load()).setGameName(terminal, game, text, options),
    )
  withPlatform(games.command('export'))
    .description('Write all of a game to a file, which "muster import-game" reads on another platform.')
    .argument('<game>', 'name or id')
    .argument('<file>', 'a file that is not there yet: arena.tar')
    .action(async (game: string, file: string, options: GlobalOptions) =>
      (await import('../manage/export-game.ts')).exportGame(terminal, game, file, options),
    )
  withRemoval(withPlatform(games.command('delete')))
    .description('Delete a game with everything in it. Refused while something of it is deployed or runs.')
    .argument('<game>', 'name or id')
    .action(async (game: string, options: Removal) => (await load()).removeGame(terminal, game, options))
}

export function addNamespaceCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/games.ts')
  const namespaces = program.command('namespaces').description('The namespaces of a game, such as prod and staging.')
  withGame(namespaces.command('list', { isDefault: true }))
    .description('List the namespaces with the versions that are deployed to them.')
    .action(async (options: GlobalOptions) => (await load()).listNamespaces(terminal, options))
  withNamespace(namespaces.command('get'))
    .description('Show a namespace.')
    .argument('[namespace]', 'name or id; default --namespace')
    .action(async (name: string | undefined, options: GlobalOptions) =>
      (await load()).getNamespace(terminal, name, options),
    )
  withGame(namespaces.command('create'))
    .description('Create a namespace.')
    .argument('<name>', 'short name, unique in the game: beta')
    .option('--display-name <text>', 'name for people; default: the short name')
    .option('--from <version>', 'the version to deploy, or the namespace whose version it is', 'prod')
    .action(async (name: string, options: GlobalOptions & { from: string }) =>
      (await load()).addNamespace(terminal, name, options),
    )
  withGame(namespaces.command('rename'))
    .description('Change the display name of a namespace.')
    .argument('<namespace>', 'name or id')
    .argument('<display-name>', 'name for people')
    .action(async (name: string, text: string, options: GlobalOptions) =>
      (await load()).setNamespaceName(terminal, name, text, options),
    )
  withGame(namespaces.command('expire'))
    .description('Set when a namespace expires: its lobbies stop, and it is deleted.')
    .argument('<namespace>', 'name or id')
    .addOption(new Option('--ttl <time>', 'how long it lives from now on, for example 3d').argParser(parseDuration))
    .option('--never', 'it does not expire')
    .action(async (name: string, options: GlobalOptions & { ttl?: number; never?: boolean }) =>
      (await load()).setNamespaceExpiry(terminal, name, options),
    )
  withRemoval(withGame(namespaces.command('delete')))
    .description('Delete a namespace with its entries. Refused while it has lobbies.')
    .argument('<namespace>', 'name or id')
    .action(async (name: string, options: Removal) => (await load()).removeNamespace(terminal, name, options))
}

export function addGroupCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/groups.ts')
  const groups = program.command('groups').description('The groups that develop games.')
  withPlatform(groups.command('list', { isDefault: true }))
    .description('List your groups.')
    .action(async (options: GlobalOptions) => (await load()).showGroups(terminal, options))
  withPlatform(groups.command('get'))
    .description('Show a group.')
    .argument('<group>', 'name or id')
    .action(async (group: string, options: GlobalOptions) => (await load()).showGroup(terminal, group, options))
  withPlatform(groups.command('create'))
    .description('Create a group.')
    .argument('<display-name>', 'name for people')
    .action(async (name: string, options: GlobalOptions) => (await load()).addGroup(terminal, name, options))
  withPlatform(groups.command('rename'))
    .description('Rename a group.')
    .argument('<group>', 'name or id')
    .argument('<display-name>', 'name for people')
    .action(async (group: string, text: string, options: GlobalOptions) =>
      (await load()).setGroupName(terminal, group, text, options),
    )
  withRemoval(withPlatform(groups.command('delete')))
    .description('Delete a group. Refused while it has games.')
    .argument('<group>', 'name or id')
    .action(async (group: string, options: Removal) => (await load()).removeGroup(terminal, group, options))
}

export function addMemberCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/groups.ts')
  const members = program.command('members').description('The members of a group.')
  withGroup(members.command('list', { isDefault: true }))
    .description('List the members.')
    .action(async (options: GroupOptions) => (await load()).showMembers(terminal, options))
  withGroup(members.command('invite'))
    .description('Print a code with which somebody joins the group.')
    .addOption(new Option('--role <role>', 'the role of the person; default developer').choices(ROLES))
    .option(
      '--expires <time>',
      'how long the code is valid, for example 7d; default and maximum 365d',
      parseDurationUpTo(INVITE_DAYS_MAX),
    )
    .option('--uses <number>', 'how many people may use it; default 1', parseWhole(1, INVITE_USES_MAX))
    .action(async (options: GroupOptions) => (await load()).inviteMember(terminal, options))
  withGroup(members.command('role'))
    .description('Change the role of a member.')
    .argument('<member>', 'e-mail address, name or id')
    .argument('<role>', 'developer or viewer', parseRole)
    .action(async (who: string, role: (typeof ROLES)[number], options: GroupOptions) =>
      (await load()).setMemberRole(terminal, who, role, options),
    )
  withRemoval(withGroup(members.command('remove')))
    .description('Remove a member, and revoke all invites of the group.')
    .argument('<member>', 'e-mail address, name or id')
    .action(async (who: string, options: GroupOptions & RemovalOptions) =>
      (await load()).removeMember(terminal, who, options),
    )
}

export function withGroup(command: Command): Command {
  return withPlatform(command).option('--group <name>', 'name or id of the group; default: the only one')
}

export function withRemoval(command: Command): Command {
  return command.option('-y, --yes', 'do not ask')
}

function parseRole(text: string): string {
  if ((ROLES as readonly string[]).includes(text)) return text
  throw new InvalidArgumentError(`It is one of: ${ROLES.join(', ')}.`)
}
