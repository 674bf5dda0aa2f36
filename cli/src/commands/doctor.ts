// `muster doctor`: what prevents a platform on this machine, or disturbs the one that runs.
import type { Command } from 'commander'
import { EXIT } from '../failure.ts'
import { withOutput } from '../options.ts'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

export function addDoctorCommand(program: Command, terminal: Terminal): void {
  withOutput(program.command('doctor'))
    .description('Examine this machine and the settings of a platform, running or not. Each failure has its remedy.')
    .addHelpText('after', '\nIt reads the same settings as muster start, and exits with 1 when something failed.')
    .option(
      '--remove-networks',
      'remove what lobbies left in the network of this machine, of a platform that does not come back',
    )
    .action((options: { removeNetworks?: true }) =>
      onPlatformNode(terminal.env, async () => {
        const { examine, removeLeftNetworks } = await import('@musterhost/server/doctor')
        if (options.removeNetworks) {
          const removed = await removeLeftNetworks({ ...terminal.env }, terminal.now())
          if (terminal.is_json) terminal.json({ removed })
          for (const what of removed) terminal.print(`removed ${what}`)
          if (removed.length === 0) terminal.note('Nothing of lobbies is left in the network of this machine.')
          return
        }
        const { hasFailed, reportLines } = await import('../doctor/report.ts')
        terminal.note('Examining this machine and the settings of its platform')
        const examination = await examine({ ...terminal.env }, terminal.now())
        if (terminal.is_json) terminal.json(examination)
        for (const line of reportLines(examination)) terminal.print(line)
        if (hasFailed(examination)) process.exitCode = EXIT.failed
      }),
    )
}
