// What contract/openapi.json says to its readers: the descriptions and summaries that contract/src puts together, and
// the members that have none. Those that stand whole in a source are read there.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listUndescribed } from '../../contract/src/undescribed.ts'
import { checkPassage, type Finding } from './check.ts'
import { type Passage, read } from './passages.ts'

const DOCUMENT = 'contract/openapi.json'

/** `sources` are the files of contract/src. */
export function checkDescriptions(root: string, sources: readonly string[]): Finding[] {
  const text = readFileSync(join(root, DOCUMENT), 'utf8')
  const document = JSON.parse(text) as Parameters<typeof listUndescribed>[0]
  const passages = sources.flatMap((file) => read(file, readFileSync(join(root, file), 'utf8')).passages)
  const already_read = new Set(passages.filter(({ kind }) => kind === 'string').map((passage) => passage.text))
  const descriptions = new Set(descriptionsOf(document).filter((description) => !already_read.has(description)))
  const undescribed = listUndescribed(document).map((member) => ({
    file: DOCUMENT,
    line: 1,
    found: member,
    advice: 'has no description: say what it is, its unit and its default',
  }))
  return [...undescribed, ...[...descriptions].flatMap((words) => checkPassage(DOCUMENT, passageOf(text, words)))]
}

function passageOf(document: string, words: string): Passage {
  const offset = document.indexOf(JSON.stringify(words))
  return { kind: 'string', line: document.slice(0, offset).split('\n').length, text: words.replaceAll('\n', ' ') }
}

function descriptionsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    (name === 'description' || name === 'summary') && typeof member === 'string' ? [member] : descriptionsOf(member),
  )
}
