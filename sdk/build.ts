// `npm run build -w sdk -- FOLDER`: writes the SDK as plain JavaScript into a folder.
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { compiledModules } from './compiled.ts'

const [target] = process.argv.slice(2)
if (target === undefined) {
  console.error('npm run build -w sdk -- FOLDER')
  process.exitCode = 2
} else {
  // npm runs this in sdk/; what was typed means a folder of where it was typed.
  const folder = resolve(process.env.INIT_CWD ?? '.', target)
  mkdirSync(folder, { recursive: true })
  const modules = compiledModules()
  for (const [name, text] of modules) writeFileSync(join(folder, name), text)
  console.log([...modules.keys()].map((name) => join(basename(folder), name)).join(' '))
}
