// Turns the workspaces into JavaScript that any Node runs from node_modules, where Node refuses TypeScript. Types become
// blanks, so lines and columns of stack traces are those of the source. Imports between workspaces become relative paths:
// the package has no links and no second package inside.
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, extname, join, posix } from 'node:path'

/** Only tests import these. */
const NOT_PACKED = /\.test\.ts$|\.golden\.json$|(^|\/)test-platform\.ts$/
const WORKSPACE_PREFIX = '@musterhost/'

type Exports = Record<string, string>
type Target = { from: string; folder: string }

/** Writes `src` of each workspace below `to`, and returns the number of files. `root` is the checkout. */
export function compileWorkspaces(root: string, to: string, workspaces: readonly string[]): number {
  const exports = new Map(workspaces.map((name) => [name, exportsOf(root, name)]))
  let files = 0
  for (const name of workspaces) {
    for (const path of globSync('src/**/*', { cwd: join(root, name), withFileTypes: true })) {
      if (!path.isFile()) continue
      const file = posix.join(name, join(path.parentPath, path.name).slice(join(root, name).length + 1))
      if (NOT_PACKED.test(file)) continue
      copyFile(root, to, file, exports)
      files += 1
    }
  }
  return files
}

function copyFile(root: string, to: string, file: string, exports: ReadonlyMap<string, Exports>): void {
  const source = join(root, file)
  const target = join(to, extname(file) === '.ts' ? toJs(file) : file)
  mkdirSync(dirname(target), { recursive: true })
  if (extname(file) === '.ts') writeFileSync(target, compile(readFileSync(source, 'utf8'), { from: file, exports }))
  else cpSync(source, target)
}

/** The JavaScript of a source. `from`: its path in the checkout. */
function compile(text: string, options: { from: string; exports: ReadonlyMap<string, Exports> }): string {
  const { from, exports } = options
  const rename = (specifier: string): string => {
    if (specifier.startsWith('.')) return toJs(specifier)
    if (!specifier.startsWith(WORKSPACE_PREFIX)) return specifier
    const target = resolveExport(specifier, exports)
    const path = posix.relative(posix.dirname(from), toJs(posix.join(target.folder, target.from)))
    return path.startsWith('.') ? path : `./${path}`
  }
  return stripTypeScriptTypes(text)
    .replaceAll(/(?<=^(?:import|export|\})[^'\n]*')([^'\n]+)(?='(?: with \{[^}]*\})?;?[ \t]*$)/gm, rename)
    .replaceAll(/(?<=\bimport\(')([^']+)(?='\))/g, rename)
    .replaceAll(/(?<=\bnew URL\(')([^']+)(?=', import\.meta\.url\))/g, toJs)
}

/** The file of `@musterhost/NAME/PATH`, by the `exports` of that workspace. */
function resolveExport(specifier: string, exports: ReadonlyMap<string, Exports>): Target {
  const [name = '', ...path] = specifier.slice(WORKSPACE_PREFIX.length).split('/')
  const wanted = ['.', ...path].join('/')
  for (const [key, target] of Object.entries(exports.get(name) ?? {})) {
    const [before = '', after] = key.split('*')
    if (after === undefined ? key === wanted : wanted.startsWith(before)) {
      return { folder: name, from: target.replace('*', wanted.slice(before.length)) }
    }
  }
  throw new Error(`${specifier} is not among the exports of a packed workspace.`)
}

function exportsOf(root: string, name: string): Exports {
  const { exports = {} } = JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8')) as { exports?: Exports }
  return exports
}

function toJs(path: string): string {
  return path.replace(/\.ts$/, '.js')
}
