// `muster init`: a new project from a template.
import type { Command } from 'commander'
import { withOutput } from '../options.ts'
import type { InitOptions } from '../templates/init.ts'
import type { Terminal } from '../terminal.ts'

export function addInitCommand(program: Command, terminal: Terminal): void {
  withOutput(program.command('init'))
    .description('Write a small game that works, with its muster.yaml, into a folder.')
    .argument('[folder]', 'default: this folder')
    .option(
      '-t, --template <name>',
      'node-ws, node-socketio, godot, static, program, agones, multiplay, gsdk or gamelift',
    )
    .option('--name <name>', 'name of the game; default: the name of the folder')
    .option('--isolated', 'let the page use threads, as Godot and Unity may need: headers of cross-origin isolation')
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { initProject, nextSteps } = await import('../templates/init.ts')
      const written = await initProject(terminal, folder, options)
      if (terminal.is_json) terminal.json(written)
      terminal.print(`${written.game}: ${written.files.length} files in ${written.folder}. Next:`)
      for (const line of nextSteps(terminal.cwd, written)) terminal.print(`  ${line}`)
    })
}
