// JavaScript of a package, made by Rolldown from the TypeScript of the checkout: a file for each program, and files that they
// share, all in one folder. Packages of others are included, except those that bring programs for one system.
import { cpSync, existsSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'
import { httpMembers } from './http-members.ts'

export type BundleOptions = {
  /** The checkout. */
  root: string
  /** The folder of the package, which gets `dist/`. */
  to: string
  /** The name of each program's file, without its ending, and its source in the checkout. */
  programs: Readonly<Record<string, string>>
  /**
   * Where the package has a file or folder of the checkout that the code reads. Other files are copied into `data/`. Null: the
   * code reads all of them in the checkout.
   */
  data: Readonly<Record<string, string>> | null
  /** Specifiers that stay imports. */
  external: readonly RegExp[]
  /** The package that stands for `@musterhost/server`, which is not included. Null: it is included. */
  server_package: string | null
}

const SERVER = '@musterhost/server'

/** Writes `dist/` and `data/` of the package. Returns the paths of all modules that it includes. */
export async function bundle(options: BundleOptions): Promise<string[]> {
  const { root, to, programs, external, server_package } = options
  const bundled = await rolldown({
    cwd: root,
    input: { ...programs },
    platform: 'node',
    // Its CommonJS form hides its imports from bundlers.
    resolve: { alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' } },
    external: [...external, ...(server_package === null ? [] : [new RegExp(`^${server_package}(/|$)`)])],
    plugins: [packagePaths(options), httpMembers()],
    logLevel: 'warn',
    onLog(level, log, handle) {
      // Packages of others contain these, and work.
      if (log.code === 'EVAL' || log.code === 'COMMONJS_VARIABLE_IN_ESM' || log.code === 'CIRCULAR_DEPENDENCY') return
      handle(level, log)
    },
  })
  const { output } = await bundled.write({
    dir: join(to, 'dist'),
    format: 'esm',
    // Names stay readable in stack traces.
    minify: 'dce-only',
    comments: false,
    chunkFileNames: 'shared-[name].js',
    entryFileNames: '[name].js',
  })
  await bundled.close()
  for (const file of output) {
    if (file.type === 'chunk' && NOT_ASCII.test(file.code))
      writeFileSync(join(to, 'dist', file.fileName), asAscii(file.code))
  }
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}

const NOT_ASCII = /[^\0-\x7f]/

/** V8 keeps a source with one other character in twice the memory. An escape means the same wherever such a character may be. */
function asAscii(code: string): string {
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A module no longer lies where it lay. So paths from it, and the name of the platform's package, change. */
function packagePaths({ root, to, programs, data, server_package }: BundleOptions): Plugin {
  const names = new Map(Object.entries(programs).map(([name, source]) => [source, name]))
  const place = (module: string, path: string): string => {
    const file = relative(root, join(dirname(module), path))
      .split(sep)
      .join('/')
    const program = names.get(file)
    if (program !== undefined) return `./${program}.js`
    // The address of a folder ends with a slash.
    if (data === null) return pathToFileURL(join(dirname(module), path)).href.replaceAll("'", '%27')
    for (const [from, target] of Object.entries(data)) {
      if (`${file}/` === from || file.startsWith(from)) return `../${target}${file.slice(from.length)}`
    }
    if (file.endsWith('.ts') || !existsSync(join(root, file))) {
      throw new Error(`${relative(root, module)} names ${file}, which the package does not have.`)
    }
    cpSync(join(root, file), join(to, 'data', file))
    return `../data/${file}`
  }
  return {
    name: 'package-paths',
    transform(code, id) {
      if (id.includes('node_modules') || !id.endsWith('.ts')) return null
      return code
        .replaceAll(/(?<=\bnew URL\(')([^']+)(?=', import\.meta\.url\))/g, (path) => place(id, path))
        .replaceAll(new RegExp(`(?<=['"])${SERVER}(?=[/'"])`, 'g'), server_package ?? SERVER)
    },
  }
}
