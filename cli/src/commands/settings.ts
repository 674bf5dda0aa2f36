// What belongs to a game or a namespace: tokens, domains, limits, builds, sites, entries, numbers and addresses.
import { Argument, type Command, Option } from 'commander'
import type { AuditOptions } from '../manage/audit.ts'
import type { GroupOptions } from '../manage/groups.ts'
import type { PageName } from '../manage/open.ts'
import type { ExportOptions, ResetOptions } from '../manage/ratings.ts'
import type { RemovalOptions } from '../manage/removal.ts'
import type { TokenOptions } from '../manage/tokens.ts'
import {
  type GlobalOptions,
  parseDuration,
  parseDurationUpTo,
  parseMoment,
  parseWhole,
  withGame,
  withNamespace,
} from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withGroup, withRemoval } from './games.ts'

type Removal = GlobalOptions & RemovalOptions

const DAY_MS = 24 * 60 * 60_000
const DOMAIN_WAIT_MS_DEFAULT = 10 * 60_000
/** Events that one command lists. */
const EVENTS_MAX = 10_000
/** Ratings that one command lists. */
const RATINGS_MAX = 10_000
const RATINGS_DEFAULT = 50
const OUTCOMES = ['done', 'begun', 'failed', 'refused'] as const
/** As in the contract, which is loaded later: CLOUD_TOKEN_TTL_MS_MAX. */
const CLOUD_TOKEN_DAYS_MAX = 365
const TOKEN_KINDS = ['cloud', 'public', 'development'] as const
const PAGES: readonly PageName[] = ['site', 'docs', 'api']

export function addTokenCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/tokens.ts')
  const tokens = program
    .command('tokens')
    .description('Tokens of a game: cloud tokens for CI, public ones for clients.')
  withKind(withNamespace(tokens.command('list', { isDefault: true })))
    .description('List the tokens, without their secrets.')
    .action(async (options: TokenOptions) => (await load()).listTokens(terminal, options))
  withKind(withNamespace(tokens.command('create')))
    .description('Create a token, and print it once.')
    .option(
      '--expires <time>',
      'how long a cloud token is valid, for example 30d; default and maximum 365d',
      parseDurationUpTo(CLOUD_TOKEN_DAYS_MAX),
    )
    .option('--name <name>', 'what a cloud token is for, for example ci; the list shows it')
    .action(async (options: TokenOptions & { expires?: number; name?: string }) =>
      (await load()).createToken(terminal, options),
    )
  withKind(withNamespace(tokens.command('revoke')))
    .description('Revoke a token. The platform refuses it within a second.')
    .argument('<token-id>', 'the id of the token, which is no secret')
    .action(async (token_id: string, options: TokenOptions) => (await load()).revokeToken(terminal, token_id, options))
}

export function addDomainCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/domains.ts')
  const domains = program.command('domains').description('Domains of your own for the site of a namespace.')
  withNamespace(domains.command('list', { isDefault: true }))
    .description('List the domains, and the DNS records that are missing.')
    .action(async (options: GlobalOptions) => (await load()).listDomains(terminal, options))
  withNamespace(domains.command('add'))
    .description('Claim a domain: prints the DNS record to set, and waits until the platform has found it.')
    .argument('<domain>', 'for example play.example.com')
    .option('--no-wait', 'only print the record')
    .addOption(
      new Option('--timeout <time>', 'how long to wait')
        .argParser(parseDuration)
        .default(DOMAIN_WAIT_MS_DEFAULT, '10m'),
    )
    .action(async (domain: string, options: GlobalOptions & { wait: boolean; timeout: number }) =>
      (await load()).addDomain(terminal, domain, options),
    )
  withRemoval(withNamespace(domains.command('remove')))
    .description('Remove a domain from the namespace.')
    .argument('<domain>', 'as domains list shows it')
    .action(async (domain: string, options: Removal) => (await load()).removeDomain(terminal, domain, options))
}

export function addSecretCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/secrets.ts')
  const secrets = program
    .command('secrets')
    .description('Secrets of a game: environment variables of its lobbies whose values nobody can read again.')
  withGame(secrets.command('list', { isDefault: true }))
    .description('List the secrets, without their values.')
    .action(async (options: GlobalOptions) => (await load()).listSecrets(terminal, options))
  withSecretScope(secrets.command('set'))
    .description(
      'Set a secret, or replace its value, which is read from standard input. White space around it is removed.',
    )
    .argument('<name>', 'name of the variable, for example PAYMENT_KEY')
    .action(async (name: string, options: GlobalOptions) => (await load()).setSecret(terminal, name, options))
  withRemoval(withSecretScope(secrets.command('remove')))
    .description('Remove a secret. Running lobbies keep it.')
    .argument('<name>', 'as secrets list shows it')
    .action(async (name: string, options: Removal) => (await load()).removeSecret(terminal, name, options))
}

export function addLimitCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/limits.ts')
  const limits = program.command('limits').description('How many lobbies a namespace may have, and players a client.')
  withNamespace(limits.command('get', { isDefault: true }))
    .description('Show the limits.')
    .action(async (options: GlobalOptions) => (await load()).showLimits(terminal, options))
  withNamespace(limits.command('set'))
    .description('Change limits; the others stay. A lower limit removes no players.')
    .argument('<name=number...>', 'for example lobby_count_max=20 max_players_per_client=4')
    .action(async (changes: string[], options: GlobalOptions) => (await load()).setLimits(terminal, changes, options))
}

export function addStoredCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/stored.ts')
  const builds = program.command('builds').description('The programs that were uploaded to a game.')
  withGame(builds.command('list', { isDefault: true }))
    .description('List the builds.')
    .option('--tag <name=value...>', 'only builds with these tags')
    .action(async (options: GlobalOptions) => (await load()).listBuilds(terminal, options))
  withRemoval(withGame(builds.command('delete')))
    .description('Delete a build. Refused while a version names it.')
    .argument('<build>', 'name or id')
    .action(async (build: string, options: Removal) => (await load()).removeBuild(terminal, build, options))
  const sites = program.command('sites').description('The pages that were uploaded to a game.')
  withGame(sites.command('list', { isDefault: true }))
    .description('List the sites.')
    .action(async (options: GlobalOptions) => (await load()).listSites(terminal, options))
  withRemoval(withGame(sites.command('delete')))
    .description('Delete a site. Refused while a version names it.')
    .argument('<site>', 'name or id')
    .action(async (site: string, options: Removal) => (await load()).removeSite(terminal, site, options))
}

export function addEntryCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/kv.ts')
  const kv = program.command('kv').description('Entries of a namespace: JSON values by key, which outlive lobbies.')
  withNamespace(kv.command('list', { isDefault: true }))
    .description('List the entries of a directory.')
    .argument('[directory]', 'for example players; default: keys without a slash', '')
    .action(async (directory: string, options: GlobalOptions) =>
      (await load()).listEntries(terminal, directory, options),
    )
  withNamespace(kv.command('get'))
    .description('Print an entry; null when there is none.')
    .argument('<key>', 'for example players/ada')
    .action(async (key: string, options: GlobalOptions) => (await load()).getEntry(terminal, key, options))
  withNamespace(kv.command('put'))
    .description('Write an entry, and replace the previous value.')
    .argument('<key>', 'for example players/ada')
    .argument('[value]', 'any JSON; default: standard input')
    .action(async (key: string, value: string | undefined, options: GlobalOptions) =>
      (await load()).putEntry(terminal, key, value, options),
    )
  withNamespace(kv.command('delete'))
    .description('Delete an entry. Without such an entry, it changes nothing.')
    .argument('<key>', 'for example players/ada')
    .action(async (key: string, options: GlobalOptions) => (await load()).removeEntry(terminal, key, options))
}

export function addRatingCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/ratings.ts')
  const ratings = program
    .command('ratings')
    .description('Ratings of players by game mode, from the results that lobby servers report.')
  withNamespace(ratings.command('list', { isDefault: true }))
    .description('List the ratings of a game mode, the best first.')
    .argument('[game-mode]', 'name of the game mode', 'default')
    .addOption(new Option('--lines <count>', 'ratings').argParser(parseWhole(1, RATINGS_MAX)).default(RATINGS_DEFAULT))
    .action(async (game_mode: string, options: GlobalOptions & { lines: number }) =>
      (await load()).showLeaderboard(terminal, game_mode, options),
    )
  withNamespace(ratings.command('show'))
    .description('Show the ratings of a player in each game mode.')
    .argument('<identity>', 'id of the identity')
    .action(async (identity_id: string, options: GlobalOptions) =>
      (await load()).showIdentity(terminal, identity_id, options),
    )
  withRemoval(withNamespace(ratings.command('reset')))
    .description('Remove ratings: of a player, of a game mode, or of a player in a game mode.')
    .option('--identity <id>', 'only ratings of this identity')
    .option('--game-mode <name>', 'only ratings of this game mode')
    .action(async (options: ResetOptions) => (await load()).reset(terminal, options))
  withNamespace(ratings.command('export'))
    .description('Print all ratings of a namespace.')
    .addOption(
      new Option('--format <format>', 'csv, or ndjson: a JSON object a line').choices(['csv', 'ndjson']).default('csv'),
    )
    .option('--game-mode <name>', 'only ratings of this game mode')
    .action(async (options: ExportOptions) => (await load()).exportAll(terminal, options))
}

export function addNumberCommands(program: Command, terminal: Terminal): void {
  const moment = parseMoment(terminal.now())
  const load = () => import('../manage/numbers.ts')
  withNamespace(program.command('analytics'))
    .description('Show numbers of a namespace over time.')
    .argument('[data-set...]', 'for example player_count lobby_count', ['player_count', 'lobby_count'])
    .addOption(
      new Option('--since <time>', 'start: a time, or how long ago')
        .argParser(moment)
        .default(terminal.now() - DAY_MS, '24h'),
    )
    .option('--until <time>', 'end; default now', moment)
    .action(async (sets: string[], options: GlobalOptions & { since: number }) =>
      (await load()).showAnalytics(terminal, sets, options),
    )
  withGroup(program.command('usage'))
    .description('Show the core time that the lobbies of a group used.')
    .option('--since <time>', 'start; default: the first of the month (UTC)', moment)
    .option('--until <time>', 'end; default now', moment)
    .action(async (options: GroupOptions) => (await load()).showUsage(terminal, options))
}

export function addAuditCommand(program: Command, terminal: Terminal): void {
  const moment = parseMoment(terminal.now())
  withGroup(program.command('audit'))
    .description('Show who changed what in a group and its games, when and from where.')
    .option('--actor <id>', 'only events of this user, token or session')
    .option('--operation <id>', 'only events of this operation')
    .addOption(new Option('--outcome <outcome>', 'only events with this outcome').choices(OUTCOMES))
    .option('--code <code>', 'only refusals and failures with this error code')
    .option('--ray <id>', 'only events of the request with this ray')
    .option('--address <ip>', 'only events from this address; - for those of the platform')
    .option('--since <time>', 'only from then on: a time, or how long ago (7d)', moment)
    .option('--until <time>', 'only before', moment)
    .option('-n, --lines <number>', 'how many at most; default 50, and all with --csv', parseWhole(1, EVENTS_MAX))
    .option('--csv', 'print all events as CSV, newest first, as they arrive')
    .action(async (options: AuditOptions) => (await import('../manage/audit.ts')).showAudit(terminal, options))
}

export function addOpenCommand(program: Command, terminal: Terminal): void {
  withNamespace(program.command('open'))
    .description('Print an address, and open it in the browser: the site of a namespace, or the docs of the platform.')
    .addArgument(new Argument('[page]', 'what to open').choices(PAGES).default('site'))
    .option('--no-browser', 'only print the address')
    .action(async (page: PageName, options: GlobalOptions & { browser: boolean }) =>
      (await import('../manage/open.ts')).openPage(terminal, page, options),
    )
}

function withSecretScope(command: Command): Command {
  return withGame(command).option(
    '--namespace <name>',
    'only in this namespace, name or id; default: in all namespaces of the game',
  )
}

function withKind(command: Command): Command {
  return command.addOption(new Option('--kind <kind>', 'which tokens').choices(TOKEN_KINDS).default('cloud'))
}
