// Prints the files of the templates of `muster init` that are made from other files of this checkout, as JSON by their path in
// cli/templates/: the SDK as JavaScript, and the script of the Godot client.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiledModules } from '../sdk/compiled.ts'

const GODOT_SCRIPT = join(import.meta.dirname, '../examples/godot-client/muster.gd')

const files: Record<string, string> = { 'godot/client/muster.gd': readFileSync(GODOT_SCRIPT, 'utf8') }
for (const [name, text] of compiledModules()) files[`sdk/${name}`] = text
process.stdout.write(JSON.stringify(files))
