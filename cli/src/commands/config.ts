// `muster config`: checks muster.yaml, and prints the schema that explains it to editors. `muster matching`: reads the rules of other
// matchmakers. All work without a platform.
import { Argument, type Command } from 'commander'
import { withOutput } from '../options.ts'
import type { Terminal } from '../terminal.ts'

export function addConfigCommands(program: Command, terminal: Terminal): void {
  const config = program.command('config').description('Check and explain muster.yaml, without a platform.')
  withOutput(config.command('check'))
    .description('Report every mistake of muster.yaml with its line and column.')
    .argument('[file]', 'default: muster.yaml in this folder, or in the nearest folder above it')
    .action(async (file: string | undefined) => {
      const { checkProject, faultsFailure, replacedMembers, shellWordsOf } = await import('../project/project.ts')
      const check = checkProject(terminal.cwd, file ?? null)
      const replaced = check.project === null ? [] : replacedMembers(check.project)
      const shell_words = check.project === null ? [] : shellWordsOf(check.project)
      if (terminal.is_json) terminal.json({ file: check.file, errors: check.faults, replaced, shell_words })
      if (check.project === null) throw faultsFailure(check)
      terminal.print(`${check.file} has no mistakes.`)
      for (const { line, column, message } of [...replaced, ...shell_words])
        terminal.print(`  ${line}:${column}  ${message}`)
    })
  withOutput(config.command('schema'))
    .description('Print the JSON Schema of muster.yaml, which gives editors completion and explanations.')
    .action(async () => {
      const { projectSchema } = await import('@musterhost/contract/project-config')
      if (terminal.is_json) terminal.json(projectSchema())
      else terminal.print(JSON.stringify(projectSchema(), null, 2))
    })
}

export function addMatchingCommands(program: Command, terminal: Terminal): void {
  const matching = program
    .command('matching')
    .description('Rules that find puts players together by, without a platform.')
  withOutput(matching.command('import'))
    .description(
      'Print the `matching` block that the rules of another matchmaker make. It ends with 1 when something has no equal, and names it.',
    )
    .addArgument(
      new Argument('<source>', 'flexmatch: a rule set; playfab: a matchmaking queue').choices(['flexmatch', 'playfab']),
    )
    .argument('<file>', 'JSON')
    .option('--allow-loss', 'print the block although something has no equal')
    .action(async (source: string, file: string, options: { allowLoss?: boolean }) =>
      (await import('../matching/import.ts')).importMatching(terminal, source, file, options),
    )
  withOutput(matching.command('try'))
    .description('Play a list of players against rules, and print which matches they make after which waits.')
    .argument('<rules>', 'JSON: the `matching` block of a game mode')
    .requiredOption(
      '--players <file>',
      'JSON: a list of players, each with `at_s`, `attributes`, `party`, `latencies_ms`',
    )
    .action(async (rules: string, options: { players: string }) =>
      (await import('../matching/try.ts')).tryMatching(terminal, rules, options),
    )
}
