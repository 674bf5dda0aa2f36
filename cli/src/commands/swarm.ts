// `muster swarm N`: bots that play a namespace over the public API.
import { type Command, Option } from 'commander'
import { type GlobalOptions, parseDuration, parseWhole, withNamespace } from '../options.ts'
import { BOTS_MAX, PATTERNS, type Pattern } from '../swarm/patterns.ts'
import type { Terminal } from '../terminal.ts'

type Options = GlobalOptions & {
  pattern: Pattern
  duration: number
  mode: string
  path: string
  port?: string
}

export function addSwarmCommand(program: Command, terminal: Terminal): void {
  withNamespace(program.command('swarm'))
    .description('Let bots find, connect and leave, and report how many players play and which limit comes first.')
    .argument('<bots>', 'number of bots', parseWhole(1, BOTS_MAX))
    .addOption(
      new Option('--pattern <pattern>', 'idle: all stay; steady: they come and go; burst: all at once')
        .choices(PATTERNS)
        .default('steady'),
    )
    .option('--duration <time>', 'how long, for example 30s or 5m', parseDuration, 30_000)
    .option('--mode <name>', 'the game mode', 'default')
    .option('--path <path>', "path and query of the game's WebSocket; {token} is the player's token", '/?token={token}')
    .option('--port <name>', 'name of the port; default: the first one that speaks HTTP')
    .addHelpText('after', '\nExample: muster swarm 200 --pattern burst --duration 1m')
    .action(async (bots: number, options: Options) => {
      const { runSwarm } = await import('../swarm/run.ts')
      await runSwarm(terminal, bots, options)
    })
}
