// The licences of the packages whose code a package of ours includes, as one text. They ask for it.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MODULES = '/node_modules/'

/** `modules`: paths of all included modules. */
export function licencesOf(modules: readonly string[]): string {
  const folders = new Set(modules.filter((path) => path.includes(MODULES)).map(folderOf))
  const parts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      name: string
      version: string
      license?: string
    }
    const texts = globSync('{LICEN[CS]E,licen[cs]e,NOTICE,COPYING}{,.*,-*}', { cwd: folder })
      .sort()
      .map((file) => readFileSync(join(folder, file), 'utf8').trim())
    return [`${name} ${version} (${license ?? 'no licence named'})`, ...texts].join('\n\n')
  })
  return `${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

/** The folder of the package that the module belongs to. */
function folderOf(path: string): string {
  const start = path.lastIndexOf(MODULES) + MODULES.length
  const [scope = '', name = ''] = path.slice(start).split('/')
  return path.slice(0, start) + (scope.startsWith('@') ? `${scope}/${name}` : scope)
}
