// `npm run build -w sdk -- FOLDER`: the SDK as plain JavaScript, for games that are written in it and for pages, which
// cannot read TypeScript. Types are left out and imports get the new names; nothing else changes.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join, resolve } from 'node:path'

const MODULES = [
  'browser',
  'player',
  'server',
  'attach',
  'attach-http',
  'attach-players',
  'attach-settings',
  'request',
  'error',
]

const [target] = process.argv.slice(2)
if (target === undefined) {
  console.error('npm run build -w sdk -- FOLDER')
  process.exitCode = 2
} else {
  // npm runs this in sdk/; what was typed means a folder of where it was typed.
  const folder = resolve(process.env.INIT_CWD ?? '.', target)
  await mkdir(folder, { recursive: true })
  for (const name of MODULES) {
    const source = join(import.meta.dirname, 'src', `${name}.ts`)
    const text = stripTypeScriptTypes(await readFile(source, 'utf8')).replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")
    await writeFile(join(folder, `${name}.js`), text)
  }
  console.log(MODULES.map((name) => join(basename(folder), `${name}.js`)).join(' '))
}
