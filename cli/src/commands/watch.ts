// What happens in a namespace: lobbies, players, logs and requests for seats.
import { type Command, Option } from 'commander'
import type { RemovalOptions } from '../manage/removal.ts'
import {
  type GlobalOptions,
  parseDuration,
  parseMoment,
  parseWhole,
  withGame,
  withNamespace,
  withPlatform,
} from '../options.ts'
import type { Terminal } from '../terminal.ts'
import type { FindOptions } from '../watch/find.ts'
import type { LobbyFilter } from '../watch/lobby-filter.ts'
import type { LogOptions } from '../watch/logs.ts'
import type { RayOptions } from '../watch/rays.ts'
import { withRemoval } from './games.ts'

const RAYS_DEFAULT = 50
/** Requests that one command lists. */
const RAYS_MAX = 1000
const LINES_DEFAULT = 100
/** Lines of a log that are printed at the beginning. */
const LINES_MAX = 100_000
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const LOBBY = 'the id, or its last 6 to 12 characters'

export function addLobbyCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../watch/lobbies.ts')
  const lobbies = program.command('lobbies').description('List the lobbies of a namespace.')
  withFilter(withNamespace(lobbies.command('list', { isDefault: true })))
    .description('List the lobbies that run.')
    .option('-a, --all', 'also those that have stopped')
    .action(async (options: GlobalOptions & LobbyFilter) => (await load()).listLobbies(terminal, options))
  withNamespace(program.command('lobby'))
    .description('Show a lobby: its state and players, and its CPU, memory, traffic and players over time.')
    .argument('<lobby>', LOBBY)
    .action(async (lobby: string, options: GlobalOptions) => (await load()).showLobby(terminal, lobby, options))
  withRemoval(withNamespace(program.command('stop')))
    .description('Stop a lobby. Its players lose their seats.')
    .argument('<lobby>', LOBBY)
    .action(async (lobby: string, options: GlobalOptions & RemovalOptions) =>
      (await load()).stopLobby(terminal, lobby, options),
    )
  withNamespace(program.command('drain'))
    .description('Drain a version: its lobbies take no new players, and stop when they are empty.')
    .argument('<version>', 'name or id')
    .option('--undo', 'let it take players again')
    .action(async (version: string, options: GlobalOptions) => (await load()).drainVersion(terminal, version, options))
  const players = program.command('players').description('The players of a namespace, reserved and connected.')
  withNamespace(players.command('list', { isDefault: true }))
    .description('List the players.')
    .argument('[lobby]', `only those of this lobby: ${LOBBY}`)
    .action(async (lobby: string | undefined, options: GlobalOptions) =>
      (await load()).listPlayers(terminal, lobby, options),
    )
  withNamespace(players.command('remove'))
    .description('Remove a player from a lobby: the seat is free, and the player token is refused from now on.')
    .argument('<player>', 'the id of the player')
    .requiredOption('--lobby <lobby>', LOBBY)
    .action(async (player: string, options: GlobalOptions & { lobby: string }) =>
      (await load()).removePlayer(terminal, player, options),
    )
}

export function addConsoleCommand(program: Command, terminal: Terminal): void {
  withNamespace(program.command('console'))
    .description(
      "Show a lobby's log, and write lines to its server. The version config must allow it (standard_input).",
    )
    .argument('<lobby>', LOBBY)
    .action(async (lobby: string, options: GlobalOptions) =>
      (await import('../watch/console.ts')).openConsole(terminal, lobby, options),
    )
}

export function addLogCommand(program: Command, terminal: Terminal): void {
  const moment = parseMoment(terminal.now())
  withFilter(withNamespace(program.command('logs')))
    .description('Print the last lines that lobbies wrote, and with -f the lines that follow.')
    .argument('[lobby]', `only this lobby: ${LOBBY}; default: all that run, or the last one`)
    .option('--lobby <lobby>', 'the same, as an option')
    .option('-f, --follow', 'print lines as they are written, until Ctrl-C')
    .option('-n, --lines <number>', 'how many of the last lines', parseWhole(1, LINES_MAX), LINES_DEFAULT)
    .option('--since <time>', 'only lines from then on: a time, or how long ago (5m)', moment)
    .option('--until <time>', 'only lines before', moment)
    .option('--filter <regexp>', 'only lines that match, in upper or lower case')
    .addOption(
      new Option('--level <level>', 'only lines of this level or above; lines of stderr are warnings').choices(LEVELS),
    )
    .action(async (lobby: string | undefined, options: LogOptions) =>
      (await import('../watch/logs.ts')).showLogs(terminal, lobby === undefined ? options : { ...options, lobby }),
    )
}

export function addRequestCommands(program: Command, terminal: Terminal): void {
  withPlatform(program.command('explain'))
    .description('Explain why a find, join or create ended as it did.')
    .argument('<ray-id>', 'the x-ray-id of the response, or the ray id of the error')
    .option('--timings', 'show how long each service took instead')
    .action(async (ray_id: string, { timings, ...options }: GlobalOptions & { timings?: boolean }) => {
      const requests = await import('../watch/explain.ts')
      return timings ? requests.timings(terminal, ray_id, options) : requests.explain(terminal, ray_id, options)
    })
  const moment = parseMoment(terminal.now())
  withNamespace(program.command('rays'))
    .description('List kept requests: failed and slow ones, and a sample of the others.')
    .option('--code <code>', 'only with this error code; none: only good ones; any: only failed ones')
    .option('--operation <id>', 'only of this operation: lobbies.find')
    .option('--slower <time>', 'only those that took at least this long: 1s', parseDuration)
    .option('--player <id>', 'only those about this player')
    .option('--since <time>', 'only from then on: a time, or how long ago (5m)', moment)
    .option('--until <time>', 'only before', moment)
    .option('-n, --lines <number>', 'how many at most', parseWhole(1, RAYS_MAX), RAYS_DEFAULT)
    .action(async (options: RayOptions) => (await import('../watch/rays.ts')).listRays(terminal, options))
  withGame(program.command('search'))
    .description('Find players, lobbies and requests in all namespaces of a game.')
    .argument('<text>', 'id of a player, identity, lobby or ray, or the address of a client')
    .action(async (text: string, options: GlobalOptions) =>
      (await import('../watch/rays.ts')).search(terminal, text, options),
    )
  withNamespace(program.command('find'))
    .description('Find a seat as a player would, and print how to connect.')
    .option('--mode <name...>', 'acceptable game modes', ['default'])
    .option('--region <name...>', 'acceptable regions; default: all')
    .option('--tag <name=value...>', 'tags that the lobby has')
    .option(
      '--address <ip>',
      'the address of the player, for limits, the nearest region and ports that admit by address; default: that of this machine, as the platform sees it',
    )
    .option('--no-create', 'fail instead of starting a lobby')
    .action(async (options: FindOptions) => (await import('../watch/find.ts')).find(terminal, options))
}

function withFilter(command: Command): Command {
  return command
    .option('--mode <name>', 'only lobbies of this game mode')
    .option('--region <name>', 'only lobbies in this region')
}
