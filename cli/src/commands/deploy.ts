// Deploy: deploy, versions, diff and rollback.
import type { Command } from 'commander'
import type { DeployOptions } from '../deploy/deploy.ts'
import type { RollbackOptions } from '../deploy/rollback.ts'
import type { RolloutOptions } from '../deploy/rollout.ts'
import { type GlobalOptions, parseDuration, parseWhole, withNamespace } from '../options.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** Deploys that `versions` lists. */
const DEPLOYS_LISTED_MAX = 1_000
const DEPLOYS_LISTED_DEFAULT = 20
const PERCENT = parseWhole(1, 99)

export function addDeployCommands(program: Command, terminal: Terminal): void {
  withNamespace(program.command('deploy'))
    .description('Build, pack and send what is new, start a lobby with it, and switch the namespace.')
    .option('-m, --message <text>', 'why: the history of the namespace keeps it')
    .option('--no-site', 'keep the site of the current version')
    .option('--no-check', 'switch the namespace before a lobby has shown that the server starts')
    .option('--detach', 'wait for no lobby, neither before the switch nor after it')
    .option('--preview [name]', 'deploy to a namespace that expires; default name: the branch of git')
    .option('--percent <percent>', 'roll out: only this part of the clients gets the version', PERCENT)
    .option('--max-failed-lobbies <percent>', 'roll back automatically when more lobbies of the roll-out fail', PERCENT)
    .option(
      '--max-refused-finds <percent>',
      'roll back automatically when more finds of the roll-out are refused',
      PERCENT,
    )
    .option('--ttl <time>', 'how long the preview lives after this deploy, for example 12h; default 3d', parseDuration)
    .action(async (options: GlobalOptions & DeployOptions) => {
      const { runDeploy } = await import('../deploy/command.ts')
      await runDeploy(terminal, options)
    })

  withNamespace(program.command('versions'))
    .description('List the deploys of a namespace: version, time, message, and when its first lobby was ready.')
    .option('--lines <count>', 'deploys that are listed', parseWhole(1, DEPLOYS_LISTED_MAX), DEPLOYS_LISTED_DEFAULT)
    .action(async (options: GlobalOptions & { lines: number }) => {
      const { listDeploys } = await import('../deploy/list.ts')
      await listDeploys(terminal, await open(terminal, options), options.lines)
    })

  withNamespace(program.command('diff'))
    .description('Show what two versions differ in: configuration, server and site.')
    .argument('<a>', 'name or id of a version')
    .argument('[b]', 'the other version; default: the one that the namespace runs')
    .action(async (a: string, b: string | undefined, options: GlobalOptions) => {
      const { compareVersions } = await import('../deploy/compare.ts')
      await compareVersions(terminal, await open(terminal, options), { a, b })
    })

  withNamespace(program.command('rollout'))
    .description('Show the roll-out: both versions side by side. With --percent, change the part of the clients.')
    .option('--percent <percent>', 'the part of the clients that gets the version', PERCENT)
    .option('--max-failed-lobbies <percent>', 'roll back automatically when more lobbies of it fail', PERCENT)
    .option('--max-refused-finds <percent>', 'roll back automatically when more finds of it are refused', PERCENT)
    .action(async (options: GlobalOptions & RolloutOptions) => {
      const { runRollout } = await import('../deploy/rollout.ts')
      await runRollout(terminal, await open(terminal, options), options)
    })

  withNamespace(program.command('promote'))
    .description('Give all clients the version of the roll-out.')
    .option('-m, --message <text>', 'why: the history of the namespace keeps it')
    .action(async (options: GlobalOptions & { message?: string }) => {
      const { promote } = await import('../deploy/rollout.ts')
      await promote(terminal, await open(terminal, options), options)
    })

  withNamespace(program.command('rollback'))
    .description(
      'End the roll-out, or switch the namespace back. Default: the last version that worked, of which a lobby became ready.',
    )
    .argument('[version]', 'name or id of the version')
    .option('-m, --message <text>', 'why: the history of the namespace keeps it')
    .option('-y, --yes', 'do not ask')
    .action(async (version: string | undefined, options: GlobalOptions & RollbackOptions) => {
      const { rollBack } = await import('../deploy/rollback.ts')
      await rollBack(terminal, await open(terminal, options), version, options)
    })
}

async function open(terminal: Terminal, options: GlobalOptions): Promise<Session> {
  const { openSession } = await import('../session.ts')
  return openSession(terminal, options)
}
