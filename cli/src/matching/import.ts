// `muster matching import`: prints the `matching` block that a file of another matchmaker makes, and names what it loses.
import { resolve } from 'node:path'
import { EXIT, Failure } from '../failure.ts'
import type { Terminal } from '../terminal.ts'
import { importFlexMatch } from './flexmatch.ts'
import { readJson } from './json-file.ts'
import { importPlayFab } from './playfab.ts'
import { type Imported, isJson, type Json, type Loss } from './result.ts'

const IMPORTERS: Readonly<Record<string, (file: Json) => Imported>> = {
  flexmatch: importFlexMatch,
  playfab: importPlayFab,
}

/** Throws a Failure when something has no equal, unless `allowLoss`. Then nothing is printed to standard output. */
export function importMatching(
  terminal: Terminal,
  source: string,
  path: string,
  { allowLoss = false }: { allowLoss?: boolean },
): void {
  const { matching, losses } = IMPORTERS[source]!(objectIn(readJson(resolve(terminal.cwd, path), path), path))
  if (losses.length > 0 && !allowLoss) throw lossFailure(losses)
  for (const { path: place, message } of losses) terminal.note(`${place}: ${message}`)
  const result = { matching }
  if (terminal.is_json) terminal.json(result)
  else terminal.print(JSON.stringify(result, null, 2))
}

function lossFailure(losses: readonly Loss[]): Failure {
  const count = losses.length === 1 ? '1 construct has' : `${losses.length} constructs have`
  return new Failure(`${count} no equal here.`, {
    details: losses,
    remedy: 'Change the file, or print the rest: --allow-loss',
  })
}

function objectIn(value: unknown, shown: string): Json {
  if (isJson(value)) return value
  throw new Failure(`${shown} is no JSON object.`, { exit_code: EXIT.usage })
}
