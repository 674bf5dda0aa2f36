// The SDK as plain JavaScript, for games that are written in it and for pages, which cannot read TypeScript. Types are left out
// and imports get the new names; nothing else changes. Node warns in a process that calls this.
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

const MODULES = [
  'browser',
  'player',
  'regions',
  'server',
  'attach',
  'attach-http',
  'attach-players',
  'attach-settings',
  'request',
  'resume',
  'error',
]

/** The text of each module by the name of its file. */
export function compiledModules(): Map<string, string> {
  return new Map(
    MODULES.map((name) => {
      const text = stripTypeScriptTypes(readFileSync(join(import.meta.dirname, 'src', `${name}.ts`), 'utf8'))
      return [`${name}.js`, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")]
    }),
  )
}
