// Packages of this checkout in the folder of a project, so that its `npm install` needs no network.
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url))

/** The packages with everything that they depend on, as npm would install them. */
export function copyPackages(names: readonly string[], target: string, copied = new Set<string>()): void {
  for (const name of names) {
    if (copied.has(name)) continue
    copied.add(name)
    cpSync(join(MODULES, name), join(target, name), { recursive: true, dereference: true })
    const manifest = JSON.parse(readFileSync(join(MODULES, name, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>
    }
    copyPackages(Object.keys(manifest.dependencies ?? {}), target, copied)
  }
}
