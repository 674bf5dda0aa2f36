// Getting started: up.
import type { Command } from 'commander'
import { withNamespace } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import type { UpOptions } from '../up.ts'

export function addUpCommand(program: Command, terminal: Terminal): void {
  withNamespace(program.command('up'))
    .description('Everything at once: write a game if the folder has none, start a platform if none runs, and deploy.')
    .option(
      '-t, --template <name>',
      'of a new game: node-ws, node-socketio, godot, static, program, agones, multiplay, gsdk or gamelift',
    )
    .option('--name <name>', 'of a new game; default: the name of the folder')
    .addHelpText('after', '\nA platform that it starts runs until Ctrl-C. The next start continues with the same data.')
    .action(async (options: UpOptions) => {
      const { runUp } = await import('../up.ts')
      await runUp(terminal, options)
    })
}
