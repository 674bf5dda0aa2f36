// Getting started: dev.
import type { Command } from 'commander'
import type { DevOptions } from '../dev/dev.ts'
import { parseWhole, withNamespace } from '../options.ts'
import type { Terminal } from '../terminal.ts'

/** The largest port. */
const PORT_MAX = 65_535

export function addDevCommands(program: Command, terminal: Terminal): void {
  withNamespace(program.command('dev'))
    .description('Run the game server of this folder behind the matchmaker, serve its page, and restart it on changes.')
    .option('--port <number>', 'the port of the page; default: a free one', parseWhole(1, PORT_MAX))
    .option('--host <name>', 'the name of this machine, as players reach the game server', 'localhost')
    .addHelpText('after', '\nWithout a running platform it starts one, which ends with the command.')
    .action(async (options: DevOptions) => {
      const { runDev } = await import('../dev/dev.ts')
      await runDev(terminal, options)
    })
}
