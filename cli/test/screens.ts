// Screens of commands, kept as text in screens/: what a person sees on a terminal of 80 columns, and what a program reads from
// pipes. With KEEP_SCREENS=1 the tests write the files, to be read as a user before they are committed.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { until } from '../../server/test/support/until.ts'
import type { DeployedProject } from './deploy-steps.ts'
import { type Ended, type Env, gather, type Muster, openScreen, type Screen } from './program.ts'

export const SCREENS = new URL('screens/', import.meta.url)
/** The size of a terminal that was not resized. */
const COLUMNS = 80
const DAY_MS = 24 * 60 * 60_000
/** The platform of a screen is behind by this, so that everything is `3 d ago`, however slow the test is. */
export const PLATFORM_BEHIND_MS = 3.25 * DAY_MS

export type Step<World> = {
  /** The command with dashes, for example `games-list`: the name of the file. */
  name: string
  args: (world: World) => readonly string[] | Promise<readonly string[]>
  /** What a person does. It ends when the command ends. */
  types?: (screen: Screen, world: World) => Promise<void>
  /** The command without a terminal, if it differs: an object can be deleted only once. */
  piped?: (world: World) => readonly string[] | Promise<readonly string[]>
  /** Where the command runs; default: the folder of the world. */
  cwd?: (world: World) => string
  piped_cwd?: (world: World) => string
  /** More environment. */
  env?: (world: World) => Env
  piped_env?: (world: World) => Env
  /** Without a terminal, SIGINT is sent once the command has written this. */
  interrupted_after?: RegExp
  /** Standard input without a terminal. */
  input?: (world: World) => string
  code?: number
  /** The exit code without a terminal, if it differs. */
  piped_code?: number
  before?: (world: World) => Promise<void>
  /** Why the order of its lines differs from run to run: they are kept sorted, each once. */
  is_sorted?: string
  /** A wider terminal, for a table whose cut depends on figures. */
  columns?: number
  /** Other figures of this command. */
  figures?: readonly (readonly [RegExp, string])[]
}

export type Shown = {
  muster: Muster
  /** Values that differ from run to run, and what is kept in their place. */
  hidden: () => readonly (readonly [string, string])[]
}

/** What a person types to a question. */
export async function agrees(screen: Screen): Promise<void> {
  await screen.shows('[y/N]')
  screen.type('y\r')
}

/** The commands of a project run in its folder, where muster.yaml names the game. */
export function inFolder({ muster, folder }: DeployedProject): Pick<Muster, 'cwd' | 'run'> {
  return { cwd: folder, run: (args, options = {}) => muster.run(args, { cwd: folder, ...options }) }
}

/** Runs the command on a terminal and without one, and compares both with the file. */
export async function showStep<World extends Shown>(t: TestContext, world: World, step: Step<World>): Promise<void> {
  await step.before?.(world)
  const { name, types, cwd, code = 0, columns = COLUMNS } = step
  const args = await step.args(world)
  const figures = (text: string): string => withoutFigures(text, world, step)
  const screen = openScreen(t, { ...world.muster, ...(cwd === undefined ? {} : { cwd: cwd(world) }) }, args, {
    columns,
    env: step.env?.(world) ?? {},
  })
  let on_terminal: string | null = null
  if (screen !== null) {
    await types?.(screen, world)
    assert.equal(await screen.ended, code, screen.text())
    on_terminal = figures(`${TERMINAL_TITLE} of ${columns} columns\n$ ${typed(args)}\n${screen.text()}`)
  }
  const piped_args = (await step.piped?.(world)) ?? args
  const ended = await runPiped(world, step, piped_args)
  assert.equal(ended.code, step.piped_code ?? code, `muster ${piped_args.join(' ')}: ${ended.stderr}${ended.stdout}`)
  const piped = [
    `$ ${typed(piped_args)}`,
    ...[ended.stdout.trimEnd()].filter((text) => text !== ''),
    ...(ended.stderr.trim() === '' ? [] : ['--- stderr', ended.stderr.trimEnd()]),
  ].join('\n')
  compare(name, on_terminal, figures(piped))
}

function runPiped<World extends Shown>(world: World, step: Step<World>, args: readonly string[]): Promise<Ended> {
  const cwd = (step.piped_cwd ?? step.cwd)?.(world)
  const options = { env: (step.piped_env ?? step.env)?.(world) ?? {}, ...(cwd === undefined ? {} : { cwd }) }
  const { interrupted_after } = step
  if (interrupted_after === undefined) return world.muster.run(args, { ...options, input: step.input?.(world) ?? '' })
  return interrupt(world.muster.start(args, options), interrupted_after)
}

async function interrupt(child: ChildProcess, after: RegExp): Promise<Ended> {
  const [stdout, stderr] = [gather(child.stdout), gather(child.stderr)]
  const closed = once(child, 'close')
  await until(`the command writes ${after}`, () => {
    if (child.exitCode !== null) throw new Error(`The command ended: ${stdout()}${stderr()}`)
    return after.test(`${stdout()}\n${stderr()}`)
  })
  child.kill('SIGINT')
  const [code] = (await closed) as [number | null]
  return { code, stdout: stdout(), stderr: stderr() }
}

const TERMINAL_TITLE = '=== on a terminal'
const PIPED_TITLE = '=== without a terminal\n'

function compare(name: string, on_terminal: string | null, piped: string): void {
  const file = new URL(`${name}.txt`, SCREENS)
  if (process.env.KEEP_SCREENS === '1' && on_terminal !== null) {
    writeFileSync(file, `${on_terminal}\n${PIPED_TITLE}${piped}`)
  }
  assert.ok(existsSync(file), `cli/test/screens/${name}.txt is missing: run this test with KEEP_SCREENS=1, and read it`)
  const kept = readFileSync(file, 'utf8')
  const split = kept.indexOf(PIPED_TITLE)
  if (on_terminal !== null) assert.equal(on_terminal, kept.slice(0, split - 1), `screen ${name}`)
  assert.equal(piped, kept.slice(split + PIPED_TITLE.length), `${name} without a terminal`)
}

/** As a person types it. */
function typed(args: readonly string[]): string {
  return ['muster', ...args.map((word) => (/^[\w./:=@+-]+$/.test(word) ? word : `'${word}'`))].join(' ')
}

/** What differs from run to run, as words of the same length where columns depend on it. */
const FIGURES: readonly (readonly [RegExp, string | ((text: string) => string)])[] = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, (id) => id.replaceAll(/[0-9a-f]/g, 'x')],
  [/\b(access|cloud|pub_prod|pub_staging|player|dev_prod)\.[\w.-]{20,}/g, (token) => `${token.split('.')[0]}.TOKEN`],
  [/:\d{4,5}\b/g, ':PORT'],
  [/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{3})?Z?/g, 'TIME'],
  [/\b\d+(?:\.\d+)? ms\b/g, 'N ms'],
  [/\d+\.\d s\b/g, 'N s'],
  [/(?<=ready after: +)\d+ s\b/g, 'N ms'],
]

function withoutFigures<World extends Shown>(text: string, world: World, { figures, is_sorted }: Step<World>): string {
  let shown = text.split('\n').map(lastDrawn).join('\n')
  for (const [pattern, value] of FIGURES) {
    shown = typeof value === 'string' ? shown.replaceAll(pattern, value) : shown.replaceAll(pattern, value)
  }
  for (const [value, name] of world.hidden()) shown = shown.replaceAll(value, name)
  for (const [pattern, value] of figures ?? []) shown = shown.replaceAll(pattern, value)
  const lines = shown.replaceAll(/ +$/gm, '').trimEnd().split('\n')
  return `${(is_sorted === undefined ? lines : [...new Set(lines)].sort()).join('\n')}\n`
}

/** A spinner draws over its own line: the last picture stays. */
function lastDrawn(line: string): string {
  return line.split('\r').findLast((picture) => picture !== '') ?? ''
}
