// The screens of the commands that begin a project or operate a platform: each on the same machine, with folders of its own.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { endProcessesOf, freeSettings, startMuster, temporaryFolder } from '../../server/test/supervisor/started.ts'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import { MATCHMAKER } from './deploy-steps.ts'
import { createMuster, type Screen } from './program.ts'
import type { Shown, Step } from './screens.ts'

export type OperateWorld = Shown & {
  /** Settings of a platform, with its data folder. */
  settings: Record<string, string>
  /** A data folder for a restore. */
  restored: string
}

type OperateStep = Step<OperateWorld>

const FIRST = 'hello'
const SECOND = 'hello-again'
const WITH_SERVER = 'with-server'
const inProject =
  (name: string) =>
  ({ muster }: OperateWorld): string =>
    join(muster.cwd, name)

const endedByCtrlC =
  (words: string) =>
  async (screen: Screen): Promise<void> => {
    await screen.shows(words)
    screen.ctrlC()
  }

/** Figures of a machine and of the platform's version. */
const MACHINE: OperateStep['figures'] = [
  [/\d+ MB are free/g, 'N MB are free'],
  [/\S+\/postgres$/gm, '/PROGRAM/postgres'],
  [/^\S+ +(sandbox|clock) .*(?:\n +->.*)*/gm, 'STATUS  $1  of this machine'],
  [/(Nothing failed\.).*/g, '$1'],
]
const COUNTS: OperateStep['figures'] = [
  [/\b\d+(?:\.\d+)? (rows|tables|objects|MB|files|migrations|planned jobs)/g, 'N $1'],
]
/** The name of a backup in a repository is its time. */
const OF_REPOSITORIES: OperateStep['figures'] = [...(COUNTS ?? []), [/\d{4}-\d\d-\d\dT\d{6}Z/g, 'NAME']]
/** The last pictures of the spinner of `start`, and columns that are as wide as paths and durations. */
const SPINNER: OperateStep['figures'] = [
  [/^ *[\u2800-\u28ff].*\n/gm, ''],
  // Notices about this machine.
  [/^ {2}[·-] .*\n/gm, ''],
  [/^ {2}(?:!|warning) +runner +lobbies .*\n/gm, ''],
  // On a loaded machine the runner of the start before has been silent for seconds when the new one reports.
  [/^ {2}(?:!|warning) +matchmaker +a node is silent.*\n/gm, ''],
  [/N m?s/g, 'N s'],
  [/\d+ migrated/g, 'N migrated'],
  [/link=[\w-]+/g, 'link=LINK'],
  [/\$PATH:\S+(?=\/node_modules)/g, '$$PATH:/CHECKOUT'],
  [/(\S) {2,}/g, '$1  '],
]

/** Commands that begin a project. */
export const PROJECT_STEPS: readonly OperateStep[] = [
  {
    name: 'init',
    args: () => ['init', FIRST],
    types: async (screen) => {
      await screen.shows('or its name)?')
      screen.type('static\r')
      await screen.shows('Name of the game')
      screen.type('\r')
    },
    piped: () => ['init', SECOND, '--template', 'static'],
  },
  { name: 'config-check', args: () => ['config', 'check', `${FIRST}/muster.yaml`] },
  {
    name: 'up',
    args: () => ['up'],
    cwd: inProject(FIRST),
    piped_cwd: inProject(SECOND),
    types: endedByCtrlC('runs until Ctrl-C'),
    interrupted_after: /runs until Ctrl-C/,
    figures: [[/^send site: .*\n/gm, '']],
  },
  {
    name: 'dev',
    args: () => ['dev'],
    before: writeServer,
    cwd: inProject(WITH_SERVER),
    types: async (screen) => {
      await screen.shows('Play: http')
      await screen.shows('the map is loaded')
      await endedByCtrlC('lobby: ready')(screen)
    },
    interrupted_after: /^(?=[\s\S]*Play: http)(?=[\s\S]*the map is loaded)(?=[\s\S]*lobby: ready)/,
    is_sorted: 'The platform, the server and the page start beside each other.',
  },
]

/** `start` ends with Ctrl-C. The platform of the other commands runs after it. */
export const OPERATE_STEPS: readonly OperateStep[] = [
  {
    name: 'start',
    args: () => ['start'],
    types: endedByCtrlC('ready'),
    interrupted_after: /^ready/m,
    is_sorted: 'The roles start and end beside each other.',
    figures: SPINNER,
  },
  {
    name: 'admin-token',
    args: () => ['admin-token'],
    piped: () => ['admin-token', '--rotate'],
    before: async ({ settings }) => void (await startMuster(settings).ready),
  },
  { name: 'doctor', args: () => ['doctor'], figures: MACHINE },
  {
    name: 'backup',
    args: ({ muster }) => ['backup', join(muster.cwd, 'one')],
    piped: ({ muster }) => ['backup', join(muster.cwd, 'two')],
    figures: COUNTS,
  },
  {
    name: 'backup-repository',
    args: ({ muster }) => ['backup', '--to', join(muster.cwd, 'repository'), '--keep', '7'],
    piped: ({ muster }) => ['backup', '--to', join(muster.cwd, 'other-repository')],
    figures: OF_REPOSITORIES,
  },
  {
    name: 'backups',
    args: ({ muster }) => ['backups', join(muster.cwd, 'repository')],
    piped: ({ muster }) => ['backups', join(muster.cwd, 'empty')],
    figures: OF_REPOSITORIES,
  },
  {
    name: 'copy-objects',
    args: ({ muster }) => ['copy-objects', join(muster.cwd, 'copied')],
    piped: ({ muster }) => ['copy-objects', join(muster.cwd, 'copied-again')],
    figures: COUNTS,
  },
  { name: 'verify', args: ({ muster }) => ['verify', join(muster.cwd, 'one')], figures: COUNTS },
  {
    name: 'restore',
    args: ({ muster }) => ['restore', join(muster.cwd, 'one')],
    env: ({ restored }) => ({ MUSTER_DATA: join(restored, 'one') }),
    piped_env: ({ restored }) => ({ MUSTER_DATA: join(restored, 'two') }),
  },
  { name: 'keys-rotate', args: () => ['keys', 'rotate', '--grace-days', '30'] },
]

function writeServer({ muster }: OperateWorld): Promise<void> {
  const folder = join(muster.cwd, WITH_SERVER)
  mkdirSync(join(folder, 'server'), { recursive: true })
  mkdirSync(join(folder, 'site'))
  writeFileSync(
    join(folder, 'muster.yaml'),
    `game: arena\nserver: { folder: server }\nsite: { folder: site }\n${MATCHMAKER}`,
  )
  writeFileSync(join(folder, 'server/server.mjs'), `${LEAST_SERVER}console.log('the map is loaded')\n`)
  writeFileSync(join(folder, 'site/index.html'), '<h1>Arena</h1>')
  return Promise.resolve()
}

export function openProjectWorld(t: TestContext): OperateWorld {
  const muster = createMuster(t)
  // PostgreSQL, which is another user, passes through.
  chmodSync(muster.cwd, 0o711)
  t.after(() => endProcessesOf(muster.cwd))
  return { muster, settings: {}, restored: '', hidden: () => [[muster.cwd, '/FOLDER']] }
}

export async function openOperateWorld(t: TestContext): Promise<OperateWorld> {
  const folder = temporaryFolder(t)
  const restored = temporaryFolder(t)
  for (const path of [folder, restored]) chmodSync(path, 0o711)
  for (const name of ['one', 'two']) mkdirSync(join(restored, name), { mode: 0o711 })
  const settings = await freeSettings(folder)
  const muster = createMuster(t, settings)
  const hidden = (): [string, string][] => [
    [join(restored, 'one'), '/RESTORED'],
    [join(restored, 'two'), '/RESTORED'],
    [muster.cwd, '/FOLDER'],
    [folder, '/DATA'],
  ]
  return { muster, settings, restored, hidden }
}
