// `muster doctor`: what prevents a platform on this machine, or disturbs the one that runs here or elsewhere.
import type { Command } from 'commander'
import type { DoctorOptions } from '../doctor/elsewhere.ts'
import { EXIT } from '../failure.ts'
import { withPlatform } from '../options.ts'
import { onPlatformNode } from '../platform-node.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `
It examines the platform that you are logged in to, and without a login this machine.
There it reads the same settings as muster start. It exits with 1 when something failed.`

export function addDoctorCommand(program: Command, terminal: Terminal): void {
  withPlatform(program.command('doctor'))
    .description('Examine a platform and its machine, running or not. Each failure has its remedy.')
    .addHelpText('after', HELP)
    .option('--here', 'this machine and its settings, also with a login to another platform')
    .option(
      '--remove-networks',
      'remove what lobbies left in the network of this machine, of a platform that does not come back',
    )
    .action(async (options: DoctorOptions) => {
      const { examineElsewhere, platformElsewhere } = await import('../doctor/elsewhere.ts')
      const session = await platformElsewhere(terminal, options)
      if (session === null) return onPlatformNode(terminal.env, () => examineHere(terminal, options))
      const { hasFailed, remoteReportLines } = await import('../doctor/report.ts')
      terminal.note(`Examining the platform at ${session.url} (this machine: muster doctor --here)`)
      const findings = await examineElsewhere(session)
      if (terminal.is_json) terminal.json({ url: session.url, findings })
      for (const line of remoteReportLines(session.url, findings)) terminal.print(line)
      if (hasFailed({ findings })) process.exitCode = EXIT.failed
    })
}

async function examineHere(terminal: Terminal, options: DoctorOptions): Promise<void> {
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
}
