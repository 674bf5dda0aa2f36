// Entries of a namespace: JSON values by key.
import { text as readAll } from 'node:stream/consumers'
import { deleteKvEntry, getKvEntry, listKvEntries, putKvEntry } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { openNamespace } from './games.ts'

/** Pages of a listing: 256 entries each. */
const PAGES_MAX = 1000

export async function listEntries(terminal: Terminal, directory: string, options: GlobalOptions): Promise<void> {
  const { session, namespace, where } = await openNamespace(terminal, options)
  terminal.note(`Entries of ${directory === '' ? 'the top' : directory} in ${where}`)
  const entries: { key: string; value: unknown }[] = []
  let anchor: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { directory, namespace_id: namespace.namespace_id, ...(anchor === undefined ? {} : { anchor }) }
    const response = await session.client.call(listKvEntries, { query })
    entries.push(...response.entries)
    anchor = response.anchor
    if (anchor === undefined) break
  }
  if (anchor !== undefined) terminal.note('The directory has more entries.')
  if (terminal.is_json) return terminal.json({ entries, ...(anchor === undefined ? {} : { anchor }) })
  printTable(
    terminal,
    entries,
    [
      { title: 'KEY', text: ({ key }) => key, is_whole: true },
      { title: 'VALUE', text: ({ value }) => JSON.stringify(value) },
    ],
    'There is no entry. Subdirectories are not included: muster kv list players/',
  )
}

export async function getEntry(terminal: Terminal, key: string, options: GlobalOptions): Promise<void> {
  const { session, namespace, where } = await openNamespace(terminal, options)
  terminal.note(`Entry ${key} in ${where}`)
  const { value } = await session.client.call(getKvEntry, { query: { key, namespace_id: namespace.namespace_id } })
  if (terminal.is_json) return terminal.json({ value })
  terminal.print(JSON.stringify(value, null, 2))
}

/** `given`: the value as JSON; without it, it is read from standard input. */
export async function putEntry(
  terminal: Terminal,
  key: string,
  given: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  const value = parseValue(given ?? (await readInput(terminal)))
  const { session, namespace, where } = await openNamespace(terminal, options)
  await session.client.call(putKvEntry, { body: { key, value, namespace_id: namespace.namespace_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Wrote ${key} in ${where}.`)
}

export async function removeEntry(terminal: Terminal, key: string, options: GlobalOptions): Promise<void> {
  const { session, namespace, where } = await openNamespace(terminal, options)
  await session.client.call(deleteKvEntry, { query: { key, namespace_id: namespace.namespace_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted ${key} in ${where}.`)
}

async function readInput(terminal: Terminal): Promise<string> {
  if (!terminal.is_interactive) return readAll(process.stdin)
  throw new Failure('The value is missing.', {
    exit_code: EXIT.usage,
    remedy: `Give it as JSON: muster kv put KEY '{"a":1}', or on standard input.`,
  })
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Failure(`The value is not JSON: ${(error as Error).message}`, {
      exit_code: EXIT.usage,
      remedy: `A text is quoted twice for the shell: '"hello"'`,
      cause: error,
    })
  }
}
