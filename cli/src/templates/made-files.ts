// The files of the templates that are made from other files of the checkout: the SDK and the script of the Godot client. A
// package has them among its templates. A checkout makes them whenever they are needed, so they are never stale.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Only a checkout has it. It is a process of its own, because Node prints a warning where types are stripped. */
const PROGRAM = fileURLToPath(new URL('../../../scripts/template-files.ts', import.meta.url))

/** The text of each file by its path in cli/templates/. A package has none to make. */
export function makeTemplateFiles(): Map<string, string> {
  if (!existsSync(PROGRAM)) return new Map()
  const args = ['--disable-warning=ExperimentalWarning', PROGRAM]
  const printed = execFileSync(process.execPath, args, { encoding: 'utf8' })
  return new Map(Object.entries(JSON.parse(printed) as Record<string, string>))
}
