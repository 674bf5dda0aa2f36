// The program with all its commands, in the groups of its help. A command's code is loaded when it runs.
import { readFileSync } from 'node:fs'
import { didYouMean } from '@musterhost/contract/suggestion'
import { Command } from 'commander'
import { addAllocatorCommand } from './commands/allocator.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addConfigCommands, addMatchingCommands } from './commands/config.ts'
import { addDeployCommands } from './commands/deploy.ts'
import { addDevCommands } from './commands/dev.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addGameCommands, addGroupCommands, addMemberCommands, addNamespaceCommands } from './commands/games.ts'
import { addInitCommand } from './commands/init.ts'
import { addLoginCommands } from './commands/login.ts'
import { addMcpCommand } from './commands/mcp.ts'
import { addJoinCommand, addNodeCommands } from './commands/nodes.ts'
import { addNoticeCommands } from './commands/notices.ts'
import { addPasskeyCommands } from './commands/passkeys.ts'
import { addPlatformCommands, addStartCommand } from './commands/platform.ts'
import { addPlayerDataCommands } from './commands/player-data.ts'
import { addScheduleCommands } from './commands/schedules.ts'
import {
  addAuditCommand,
  addDomainCommands,
  addEntryCommands,
  addLimitCommands,
  addNumberCommands,
  addOpenCommand,
  addRatingCommands,
  addSecretCommands,
  addStoredCommands,
  addTokenCommands,
} from './commands/settings.ts'
import { addSignInProviderCommands } from './commands/sign-in-providers.ts'
import { addStatusPageCommands } from './commands/status-page.ts'
import { addSwarmCommand } from './commands/swarm.ts'
import { addUpCommand } from './commands/up.ts'
import { addConsoleCommand, addLobbyCommands, addLogCommand, addRequestCommands } from './commands/watch.ts'
import type { Terminal } from './terminal.ts'

type AddCommands = (program: Command, terminal: Terminal) => void

/** Each group in the order of the help. A new command is a file in commands/ and an entry here. */
const GROUPS: Readonly<Record<string, readonly AddCommands[]>> = {
  'Getting started': [addInitCommand, addUpCommand, addDevCommands, addLoginCommands],
  Deploy: [addDeployCommands, addConfigCommands, addMatchingCommands],
  Watch: [
    addLobbyCommands,
    addLogCommand,
    addConsoleCommand,
    addRequestCommands,
    addNumberCommands,
    addOpenCommand,
    addSwarmCommand,
    addMcpCommand,
  ],
  Manage: [
    addGameCommands,
    addNamespaceCommands,
    addGroupCommands,
    addMemberCommands,
    addTokenCommands,
    addDomainCommands,
    addSecretCommands,
    addNoticeCommands,
    addScheduleCommands,
    addStatusPageCommands,
    addPlayerDataCommands,
    addLimitCommands,
    addStoredCommands,
    addEntryCommands,
    addRatingCommands,
    addAuditCommand,
  ],
  Operate: [
    addStartCommand,
    addJoinCommand,
    addNodeCommands,
    addPlatformCommands,
    addSignInProviderCommands,
    addPasskeyCommands,
    addAllocatorCommand,
    addDoctorCommand,
    addCompletionCommand,
  ],
}

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

export function createProgram(terminal: Terminal): Command {
  const program = new Command('muster')
    .description('A self-hosted multiplayer game hosting platform.')
    .version(version, '-v, --version')
    .showHelpAfterError('Add --help to see what the command takes.')
    .exitOverride()
    .addHelpCommand(
      new Command('help').argument('[command]').description('Show the help of a command.').helpGroup('Operate:'),
    )
  for (const [group, families] of Object.entries(GROUPS)) {
    program.commandsGroup(`${group}:`)
    for (const addCommands of families) addCommands(program, terminal)
  }
  for (const family of program.commands) for (const command of family.commands) command.allowExcessArguments()
  return program.hook('preAction', (_program, command) => refuseExcess(command))
}

/** `muster games creat` runs the default command, which is `list`, with an argument. The user meant another command. */
function refuseExcess(command: Command): void {
  const { parent, args, registeredArguments } = command
  const word = args[registeredArguments.length]
  if (parent === null || word === undefined || registeredArguments.at(-1)?.variadic === true) return
  const names = parent.commands.map((one) => one.name())
  const family = `muster ${parent.name()}`
  command.error(
    `error: '${word}' is no command of ${family}, and no argument of ${family} ${command.name()}.${didYouMean(word, names)}`,
  )
}
