// `node contract/src/compare.ts OLD.json NEW.json`: prints each difference between two OpenAPI documents which a program
// could notice, and exits with 1 when there is one. Texts for people and the order of an object's members are ignored.
import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'

const TEXTS: ReadonlySet<string> = new Set(['summary', 'description', 'example', 'examples'])
/** Objects whose keys are names that somebody chose, so that `description` is a member like any other. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'schemas',
  'paths',
  'responses',
  'headers',
])

/** One line for each difference: where it is, the old value and the new one. */
export function compareContracts(old_value: unknown, new_value: unknown, at = '', holder = ''): string[] {
  if (isObject(old_value) && isObject(new_value)) {
    const keys = new Set([...Object.keys(old_value), ...Object.keys(new_value)])
    return [...keys]
      .filter((key) => MAPS.has(holder) || !TEXTS.has(key))
      .flatMap((key) =>
        compareContracts(old_value[key], new_value[key], `${at}/${escaped(key)}`, MAPS.has(holder) ? '' : key),
      )
  }
  if (Array.isArray(old_value) && Array.isArray(new_value) && old_value.length === new_value.length) {
    return old_value.flatMap((value, index) => compareContracts(value, new_value[index], `${at}/${index}`))
  }
  return isDeepStrictEqual(old_value, new_value) ? [] : [`${at}: ${shown(old_value)} -> ${shown(new_value)}`]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As in a JSON pointer (RFC 6901). */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

function shown(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value)
}

if (import.meta.main) {
  const [old_path, new_path] = process.argv.slice(2)
  if (old_path === undefined || new_path === undefined) {
    console.error('node contract/src/compare.ts OLD.json NEW.json')
    process.exit(2)
  }
  const [old_document, new_document] = await Promise.all(
    [old_path, new_path].map(async (path) => JSON.parse(await readFile(path, 'utf8')) as unknown),
  )
  const differences = compareContracts(old_document, new_document)
  for (const difference of differences) console.log(difference)
  console.log(differences.length === 0 ? 'identical' : `${differences.length} differences`)
  process.exitCode = differences.length === 0 ? 0 : 1
}
