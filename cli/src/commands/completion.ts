// `muster completion SHELL`: the script that lets the shell complete commands and options.
import { Argument, type Command } from 'commander'
import type { Shell } from '../completion/scripts.ts'
import type { Terminal } from '../terminal.ts'

/** Their scripts are loaded only when the command runs. */
const SHELLS: readonly Shell[] = ['bash', 'zsh', 'fish']

export function addCompletionCommand(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('Print the script that lets your shell complete commands and options.')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText('after', '\nExample: source <(muster completion bash)')
    .action(async (shell: Shell) => {
      const [{ listCommands }, { completionScript }] = await Promise.all([
        import('../completion/commands.ts'),
        import('../completion/scripts.ts'),
      ])
      terminal.print(completionScript(shell, listCommands(program)).trimEnd())
    })
}
