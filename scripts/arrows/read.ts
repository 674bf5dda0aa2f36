// Reads the TypeScript files of the workspaces, with their imports and the files that these lead to. Biome formats every
// import, so its text is enough to read it. An import that cannot be read is a fault, never skipped.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, posix, sep } from 'node:path'
import { GAMES, GENERATED } from './rules.ts'

export type Import = {
  /** The text between the quotes. */
  specifier: string
  line: number
  /** Erased before the program runs. */
  is_type: boolean
  /**
   * The file that the import leads to, relative to the root; null for a package or a module of Node. UNKNOWN_FILE for a
   * file of this repository that does not exist, or whose path is computed at run time.
   */
  file: string | null
}

export type SourceFile = { path: string; lines: readonly string[]; imports: readonly Import[] }

/** `exports` are those of package.json: from './name' to './file'. */
export type Workspace = { folder: string; name: string; exports: Record<string, string>; dependencies: Set<string> }

export const UNKNOWN_FILE = 'unknown'

const SOURCES = '{contract,protocols,server,sdk,cli,hub,scripts,examples,bench}/**/*.{ts,mts,cts,tsx,js,mjs,cjs}'
/** Folders of packages, and of what is built. */
const NOT_SOURCES: readonly string[] = ['node_modules', 'dist']
const WORKSPACES = '{contract,protocols,server,sdk,cli,hub,examples/*,bench}/package.json'

/** `import`, `import type`, `export ... from` at the beginning of a line, and `import(` anywhere. */
const STATIC_IMPORT = /^(import|export)\b(\s+type\b)?([^'"`;=]*?\bfrom)?\s*(?:'([^']+)'|"([^"]+)")/gm
const DYNAMIC_IMPORT = /\bimport\(\s*(?:'([^']+)'|"([^"]+)"|([^\s)]))/g
/** The beginning of a static import. A match here without one above could not be read. */
const BEGIN_OF_IMPORT = /^(?:import\b(?!\s*[(.])|export\s+(?:type\s+)?(?:\*|\{[^}]*\}\s*from\b))/gm

export function readWorkspaces(root: string): Workspace[] {
  return globSync(WORKSPACES, { cwd: root }).map((path) => {
    const {
      name,
      exports = {},
      dependencies = {},
      peerDependencies = {},
    } = JSON.parse(readFileSync(join(root, path), 'utf8')) as {
      name: string
      exports?: Record<string, string>
      dependencies?: Record<string, string>
      peerDependencies?: Record<string, string>
    }
    // A peer is declared too: a command may load it where the user has installed it.
    const declared = new Set(Object.keys({ ...dependencies, ...peerDependencies }))
    return { folder: slashed(dirname(path)), name, exports, dependencies: declared }
  })
}

export function readSources(root: string, workspaces: readonly Workspace[]): SourceFile[] {
  return globSync(SOURCES, { cwd: root, exclude: (name) => NOT_SOURCES.includes(name) })
    .map(slashed)
    .filter((path) => !GENERATED.includes(path) && !GAMES.some((folder) => path.startsWith(folder)))
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      return { path, lines: text.split('\n'), imports: importsOf(root, path, text, workspaces) }
    })
}

function importsOf(root: string, path: string, text: string, workspaces: readonly Workspace[]): Import[] {
  const found: Import[] = []
  const add = (index: number, specifier: string | undefined, is_type: boolean): void => {
    const line = text.slice(0, index).split('\n').length
    const file = specifier === undefined ? UNKNOWN_FILE : fileOf(root, path, specifier, workspaces)
    found.push({ specifier: specifier ?? 'import()', line, is_type, file })
  }
  const read = new Set<number>()
  for (const match of text.matchAll(STATIC_IMPORT)) {
    // `export 'x'` does not exist; without `from` only `import 'x'` does.
    if (match[1] === 'export' && match[3] === undefined) continue
    read.add(match.index)
    add(match.index, match[4] ?? match[5], match[2] !== undefined)
  }
  for (const { index } of text.matchAll(BEGIN_OF_IMPORT)) if (!read.has(index)) add(index, undefined, false)
  for (const match of text.matchAll(DYNAMIC_IMPORT)) {
    if (!isComment(text, match.index)) add(match.index, match[1] ?? match[2], false)
  }
  return found.sort((a, b) => a.line - b.line)
}

function isComment(text: string, index: number): boolean {
  const begin = text.lastIndexOf('\n', index) + 1
  return /^\s*(\/\/|\/?\*)/.test(text.slice(begin, index))
}

function fileOf(root: string, from: string, specifier: string, workspaces: readonly Workspace[]): string | null {
  if (specifier.startsWith('.')) return existing(root, posix.join(posix.dirname(from), specifier))
  const workspace = workspaces.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`))
  if (workspace === undefined) return null
  const wanted = `.${specifier.slice(workspace.name.length)}`
  for (const [name, target] of Object.entries(workspace.exports)) {
    const [before, after] = name.split('*')
    if (after === undefined ? name !== wanted : !wanted.startsWith(before!) || !wanted.endsWith(after)) continue
    const middle = after === undefined ? '' : wanted.slice(before!.length, wanted.length - after.length)
    return existing(root, posix.join(workspace.folder, target.replace('*', middle)))
  }
  return UNKNOWN_FILE
}

function existing(root: string, path: string): string {
  return existsSync(join(root, path)) || GENERATED.includes(path) ? path : UNKNOWN_FILE
}

function slashed(path: string): string {
  return path.replaceAll(sep, '/')
}
