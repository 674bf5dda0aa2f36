// `muster config`: checks muster.yaml, and prints the schema that explains it to editors. Both work without a platform.
import type { Command } from 'commander'
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
