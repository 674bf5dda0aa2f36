// What `muster init` writes: a small game or page that works, from cli/templates/, with the SDK as plain files.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { projectSchema } from '@musterhost/contract/project-config'
import { makeTemplateFiles } from './made-files.ts'

const FOLDER = fileURLToPath(new URL('../../templates/', import.meta.url))
/** The SDK as JavaScript. */
const SDK = 'sdk'
const CONFIG_FILE = 'muster.yaml'
/** npm leaves files of these names out of packages, so the package has them with an underscore. */
const RENAMED: ReadonlySet<string> = new Set(['_gitignore', '_npmignore', '_npmrc'])

const PAGE_SDK = ['browser', 'error', 'request', 'resume']
const SERVER_SDK = ['error', 'server']
const ATTACH_SDK = [...SERVER_SDK, 'attach', 'attach-http', 'attach-players', 'attach-settings']

type Template = {
  /** For the question of `muster init`. */
  title: string
  /** Folders of cli/templates/. A file of a later one replaces that of an earlier one. */
  layers: readonly string[]
  /** Modules of the SDK by the folder that gets them. */
  sdk: Readonly<Record<string, readonly string[]>>
}

export const TEMPLATES = {
  'node-ws': {
    title: 'a game server in Node with ws',
    layers: ['game', 'node-ws'],
    sdk: { 'server/sdk': SERVER_SDK, 'site/sdk': PAGE_SDK },
  },
  'node-socketio': {
    title: 'a game server in Node with Socket.IO',
    layers: ['game', 'node-socketio'],
    sdk: { 'server/sdk': ATTACH_SDK, 'site/sdk': PAGE_SDK },
  },
  godot: {
    title: 'a Godot client, a page, and their server in Node',
    layers: ['game', 'node-ws', 'godot'],
    sdk: { 'server/sdk': SERVER_SDK, 'site/sdk': PAGE_SDK },
  },
  static: { title: 'a page without a server', layers: ['static'], sdk: {} },
  program: {
    title: 'any program as the game server, here in Python',
    layers: ['game', 'program'],
    sdk: { 'site/sdk': PAGE_SDK },
  },
  agones: {
    title: 'a server made for Agones',
    layers: ['game', 'with-protocol', 'agones'],
    sdk: { 'site/sdk': PAGE_SDK },
  },
  multiplay: {
    title: 'a server made for Unity Multiplay',
    layers: ['game', 'with-protocol', 'multiplay'],
    sdk: { 'site/sdk': PAGE_SDK },
  },
  gsdk: {
    title: 'a server made for PlayFab (GSDK)',
    layers: ['game', 'with-protocol', 'gsdk'],
    sdk: { 'site/sdk': PAGE_SDK },
  },
  gamelift: {
    title: 'a server made for GameLift',
    layers: ['game', 'with-protocol', 'gamelift'],
    sdk: { 'site/sdk': PAGE_SDK },
  },
} as const satisfies Record<string, Template>
export type TemplateName = keyof typeof TEMPLATES
export const TEMPLATE_NAMES = Object.keys(TEMPLATES) as readonly TemplateName[]

/** The headers that give a page threads (docs/sites.md). The section `cdn` is the last one of each template. */
const ISOLATED_ROUTES = `\
  routes:
    # The page may use threads: Godot 4 with thread support and Unity with native threads need these headers.
    - glob: "**"
      priority: 1
      middlewares:
        - kind:
            custom_headers:
              headers:
                - { name: Cross-Origin-Opener-Policy, value: same-origin }
                - { name: Cross-Origin-Embedder-Policy, value: require-corp }
`

/** The files of a new project, by path. `game` is its name_id. `is_isolated`: its page may use threads. */
export function renderTemplate(name: TemplateName, game: string, is_isolated = false): Map<string, string> {
  const { layers, sdk }: Template = TEMPLATES[name]
  const files = new Map<string, string>()
  const made = makeTemplateFiles()
  for (const layer of layers) {
    for (const [path, text] of filesOf(layer, made)) {
      files.set(path, text.replaceAll('GAME_NAME', game).replaceAll('GAME_TITLE', titleOf(game)))
    }
  }
  // The rules are in main.py.
  if (name === 'program') files.delete('server/game.js')
  const sdk_files = new Map(filesOf(SDK, made))
  for (const [folder, modules] of Object.entries(sdk)) {
    for (const module of modules) files.set(`${folder}/${module}.js`, sdk_files.get(`${module}.js`)!)
  }
  if (is_isolated) files.set(CONFIG_FILE, isolated(files.get(CONFIG_FILE)!))
  files.set('muster.schema.json', `${JSON.stringify(projectSchema(), null, 2)}\n`)
  return files
}

function isolated(config: string): string {
  return `${config}${/^cdn:$/m.test(config) ? '' : '\ncdn:\n'}${ISOLATED_ROUTES}`
}

function titleOf(game: string): string {
  const words = game.replaceAll('-', ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

/** The files of a folder of cli/templates/: those that it has, then those that are made. */
function* filesOf(name: string, made: ReadonlyMap<string, string>): Generator<[path: string, text: string]> {
  const folder = join(FOLDER, name)
  for (const entry of existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : []) {
    if (!entry.isFile()) continue
    const file = RENAMED.has(entry.name) ? `.${entry.name.slice(1)}` : entry.name
    const inside = entry.parentPath.slice(folder.length + 1).replaceAll('\\', '/')
    yield [inside === '' ? file : `${inside}/${file}`, readFileSync(join(entry.parentPath, entry.name), 'utf8')]
  }
  for (const [path, text] of made) if (path.startsWith(`${name}/`)) yield [path.slice(name.length + 1), text]
}
