// The commands of the program as data, for completion scripts and for the pages of the documentation.
import type { Command, Option } from 'commander'

export type CommandEntry = {
  /** Names from the program down, without `muster`: `context list`. Empty for the program itself. */
  path: string
  description: string
  arguments: { name: string; description: string; is_required: boolean }[]
  options: { names: string[]; flags: string; description: string; takes_value: boolean; choices: string[] }[]
  children: { name: string; description: string }[]
}

/** The program and all its commands, each before those below it. */
export function listCommands(program: Command): CommandEntry[] {
  return entriesOf(program, '')
}

function entriesOf(command: Command, path: string): CommandEntry[] {
  // The help command has no page and completes nothing of its own.
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help')
  const own: CommandEntry = {
    path,
    description: command.description(),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      description: argument.description,
      is_required: argument.required,
    })),
    options: command.createHelp().visibleOptions(command).map(optionEntry),
    children: below.map((child) => ({ name: child.name(), description: child.description() })),
  }
  return [own, ...below.flatMap((child) => entriesOf(child, `${path} ${child.name()}`.trim()))]
}

function optionEntry(option: Option): CommandEntry['options'][number] {
  return {
    names: [option.short, option.long].filter((name) => name !== undefined),
    flags: option.flags,
    description: option.description,
    takes_value: option.required || option.optional,
    choices: option.argChoices ?? [],
  }
}
