// muster init: writes a project into a folder. It writes all files or none, and never over a file.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { closestName } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { Terminal } from '../terminal.ts'
import { renderTemplate, TEMPLATE_NAMES, TEMPLATES, type TemplateName } from './templates.ts'

export type InitOptions = { template?: string; name?: string; isolated?: boolean }
export type Initialised = { folder: string; template: TemplateName; game: string; files: string[] }

/** The name_id of a game, as the contract has it. */
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
/** Characters of the name of a game. */
const NAME_LENGTH_MAX = 16
/** Files that an error lists. */
const SHOWN_MAX = 5

/** `target`: the folder, relative to where the command runs. Without it, the current folder. */
export async function initProject(
  terminal: Terminal,
  target: string | undefined,
  options: InitOptions,
): Promise<Initialised> {
  const folder = resolve(terminal.cwd, target ?? '.')
  const template = await chooseTemplate(terminal, options.template)
  const game = await chooseName(terminal, folder, options.name)
  terminal.note(`Writing ${TEMPLATES[template].title} to ${folder}`)
  const files = renderTemplate(template, game, options.isolated)
  const taken = [...files.keys()].filter((path) => existsSync(join(folder, path)))
  if (taken.length > 0) {
    const more = taken.length > SHOWN_MAX ? `, and ${taken.length - SHOWN_MAX} more` : ''
    throw new Failure(`${folder} has these files already: ${taken.slice(0, SHOWN_MAX).join(', ')}${more}.`, {
      exit_code: EXIT.usage,
      remedy: 'Nothing was written. Choose another folder: muster init FOLDER',
    })
  }
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, { flag: 'wx' })
  }
  return { folder, template, game, files: [...files.keys()].sort() }
}

/** What to type next, in three lines at most. */
export function nextSteps(cwd: string, { folder }: Initialised): string[] {
  const inside = relative(cwd, folder)
  const path = inside.startsWith('..') ? folder : inside
  return [...(path === '' ? [] : [`cd ${/\s/.test(path) ? JSON.stringify(path) : path}`]), 'muster deploy']
}

async function chooseTemplate(terminal: Terminal, given: string | undefined): Promise<TemplateName> {
  const asked = TEMPLATE_NAMES.map((name, index) => `  ${index + 1}  ${name.padEnd(14)} ${TEMPLATES[name].title}`)
  if (given === undefined && terminal.is_interactive) for (const line of asked) terminal.note(line)
  const question = `Which template (1 to ${TEMPLATE_NAMES.length}, or its name)?`
  const wanted = given ?? (await terminal.ask(question, `--template ${TEMPLATE_NAMES.join('|')}`))
  const found = TEMPLATE_NAMES.find((name, index) => name === wanted || String(index + 1) === wanted)
  if (found !== undefined) return found
  const closest = closestName(wanted, TEMPLATE_NAMES)
  throw new Failure(
    `There is no template ${JSON.stringify(wanted)}.${closest === null ? '' : ` Did you mean ${closest}?`}`,
    {
      exit_code: EXIT.usage,
      remedy: `Templates: ${TEMPLATE_NAMES.join(', ')}.`,
    },
  )
}

/** The name of the folder, if it can be the name of a game. */
async function chooseName(terminal: Terminal, folder: string, given: string | undefined): Promise<string> {
  const of_folder = nameFrom(basename(folder))
  let name = given ?? of_folder
  if (given === undefined && terminal.is_interactive) {
    const offered = of_folder === null ? '' : ` [${of_folder}]`
    name = (await terminal.ask(`Name of the game${offered}?`, '--name')) || of_folder
  }
  if (name !== null && NAME.test(name) && name.length <= NAME_LENGTH_MAX) return name
  const what = name === null ? `The name of the folder ${basename(folder)}` : JSON.stringify(name)
  throw new Failure(`${what} cannot be the name of a game.`, {
    exit_code: EXIT.usage,
    remedy: `Give --name: at most ${NAME_LENGTH_MAX} lower-case letters and digits, with single dashes in between.`,
  })
}

function nameFrom(text: string): string | null {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LENGTH_MAX)
    .replaceAll(/^-|-$/g, '')
  return name === '' ? null : name
}
