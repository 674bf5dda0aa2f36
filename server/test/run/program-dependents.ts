// The test files whose outcome depends on optional programs: a module of the tests that they load asks for one
// (optional-programs.ts), or starts lobbies that have sandboxes where bubblewrap is installed. All other files run the same with
// the programs and without them, so only these are run once more with the programs hidden.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { modulesOf } from './modules-of.ts'
import { OPTIONAL_PROGRAMS } from './optional-programs.ts'

/** It names all programs and needs none. */
const TABLE = join(import.meta.dirname, 'optional-programs.ts')
/** How a module of tests names a program that it needs. */
const PROGRAMS = new RegExp(`'(?:${Object.keys(OPTIONAL_PROGRAMS).join('|')})'`)
/** A platform of the tests with sandboxes, a runner of its own, or the whole platform as `muster start` runs it. */
const LOBBIES_START = /\bhas_sandboxes:\s*true|(?<!function )\b(?:startMuster|openRunner|openDriver)\(|(?<!\w)\['start'/

export function programDependents(files: readonly string[]): string[] {
  const is_dependent = new Map<string, boolean>()
  return files.filter((file) => [...modulesOf(file)].some((module) => remembered(is_dependent, module)))
}

function remembered(known: Map<string, boolean>, file: string): boolean {
  const answer = known.get(file) ?? dependsItself(file)
  known.set(file, answer)
  return answer
}

function dependsItself(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  return LOBBIES_START.test(text) || (file !== TABLE && text.includes("optional-programs.ts'") && PROGRAMS.test(text))
}
