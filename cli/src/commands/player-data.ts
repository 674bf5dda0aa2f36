// Commands on the data of one player.
import type { Command } from 'commander'
import type { PlayerOptions } from '../manage/player-data.ts'
import type { RemovalOptions } from '../manage/removal.ts'
import { withGame } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

export function addPlayerDataCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/player-data.ts')
  const players = program.command('player-data').description('All data of one player of a game: export and erase them.')
  withPlayer(withGame(players.command('export')))
    .description('Write all data of a player to a file, a JSON object a line.')
    .argument('<file>', 'a file that is not there yet: player.jsonl')
    .action(async (file: string, options: PlayerOptions) => (await load()).exportPlayer(terminal, file, options))
  withRemoval(withPlayer(withGame(players.command('erase'))))
    .description('Erase the data of a player. The platform records that, without a name.')
    .action(async (options: PlayerOptions & RemovalOptions) => (await load()).erasePlayer(terminal, options))
  withPlayer(withGame(players.command('erasures')))
    .description('List the erasures of the game, or of one player.')
    .action(async (options: PlayerOptions) => (await load()).listPlayerErasures(terminal, options))
}

function withPlayer(command: Command): Command {
  return command
    .option('--identity <id>', 'id of the identity of the player')
    .option('--address <ip>', 'address of the player: 203.0.113.7')
}
