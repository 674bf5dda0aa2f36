// A page for each command of `muster`, made from the program itself: usage, arguments, options and examples.
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type CommandEntry, listCommands } from '../cli/src/completion/commands.ts'
import { createProgram } from '../cli/src/program.ts'
import { ProcessTerminal } from '../cli/src/terminal.ts'

type Command = ReturnType<typeof createProgram>

const HEADER = '<!-- Made by `npm run generate` from the program. -->'

/** Writes `docs/commands/`, and returns the list of its pages for the index. */
export async function writeCommandPages(root: string): Promise<string> {
  const program = createProgram(new ProcessTerminal({}))
  const entries = listCommands(program)
  const folder = join(root, 'docs/commands')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const [main, ...others] = entries
  const names = main!.children.map(({ name }) => name).filter((name) => name !== 'help')
  for (const name of names) {
    const parts = others.filter(({ path }) => path === name || path.startsWith(`${name} `))
    const text = parts.map((entry) => section(program, entry)).join('\n')
    await writeFile(join(folder, `${name}.md`), `${HEADER}\n\n${text}`)
  }
  return main!.children
    .filter(({ name }) => names.includes(name))
    .map(({ name, description }) => `- [\`muster ${name}\`](commands/${name}.md): ${description}\n`)
    .join('')
}

function section(program: Command, entry: CommandEntry): string {
  const command = entry.path
    .split(' ')
    .reduce((parent, name) => parent.commands.find((child) => child.name() === name)!, program)
  const heading = entry.path.includes(' ') ? '##' : '#'
  const usage = `\`\`\`text\nmuster ${entry.path} ${command.usage()}`.trimEnd()
  return [
    `${heading} muster ${entry.path}\n`,
    `${entry.description}\n`,
    `${usage}\n\`\`\`\n`,
    ...table(
      'argument',
      entry.arguments.map(({ name, description }) => [name, description]),
    ),
    ...table(
      'option',
      entry.options.map((option) => [option.flags, describe(option)]),
    ),
    ...table(
      'command',
      entry.children.map(({ name, description }) => [`muster ${entry.path} ${name}`, description]),
    ),
    ...textAfter(command),
  ].join('\n')
}

function describe({ description, choices }: CommandEntry['options'][number]): string {
  return choices.length === 0 ? description : `${description} (${choices.join(', ')})`
}

function table(title: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return []
  const lines = rows.map(([name, text]) => `| \`${name.replaceAll('|', '\\|')}\` | ${cell(text)} |`)
  return [[`| ${title} | meaning |`, '| --- | --- |', ...lines, ''].join('\n')]
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}

/** The examples and remarks that the command's help ends with. */
function textAfter(command: Command): string[] {
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text), getOutHasColors: () => false })
  const own = command.helpInformation()
  command.outputHelp()
  const after = help.slice(help.indexOf(own) + own.length).trim()
  return after === '' ? [] : ['```text', after, '```', '']
}
