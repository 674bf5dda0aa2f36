// The rules of the prose check, each as a function of what was read.
import { basename } from 'node:path'
import { FILES, IDENTIFIERS, type NameRule } from './names.ts'
import { type Passage, type Reading, read } from './passages.ts'
import { proseOf, sentencesOf } from './sentences.ts'
import { WORDS } from './words.ts'

export type Finding = {
  file: string
  line: number
  /** The words that break the rule, or the beginning of the sentence. */
  found: string
  advice: string
}

export const SENTENCE_WORDS_MAX = 40

export function checkFile(file: string, text: string): Finding[] {
  const reading = read(file, text)
  return [
    ...checkFileName(file),
    ...checkIdentifiers(file, reading),
    ...reading.passages.flatMap((passage) => checkPassage(file, passage)),
  ].sort((a, b) => a.line - b.line)
}

export function checkPassage(file: string, passage: Passage): Finding[] {
  const prose = proseOf(passage.text)
  const lineAt = (offset: number) => passage.line + prose.slice(0, offset).split('\n').length - 1
  const sentences = sentencesOf(prose)
  const long = sentences
    .filter(({ words }) => words > SENTENCE_WORDS_MAX)
    .map(({ text, words, offset }) => ({
      file,
      line: lineAt(offset),
      found: `${beginningOf(passage.text.slice(offset, offset + text.length))} ...`,
      advice: `is a sentence of ${words} words: ${SENTENCE_WORDS_MAX} at most, 25 is the aim`,
    }))
  const beginnings = passage.kind === 'comment' ? sentences.slice(0, 1) : []
  const words = WORDS.filter(({ within, allowed }) => holdsIn(file, within) && !isAllowed(file, allowed)).flatMap(
    ({ pattern, instead, only }) =>
      (only === undefined ? sentences : beginnings).flatMap(({ text, offset }) =>
        [...text.matchAll(overLines(pattern))].map((match) => ({
          file,
          line: lineAt(offset + match.index),
          found: match[0].replaceAll(/\s+/g, ' '),
          advice: `is not used here; instead: ${instead}`,
        })),
      ),
  )
  return [...long, ...words]
}

/** A space of a pattern is also a line break of the text. */
function overLines({ source, flags }: RegExp): RegExp {
  return new RegExp(source.replaceAll(' ', '\\s+'), `g${flags}`)
}

function checkIdentifiers(file: string, { identifiers }: Reading): Finding[] {
  return IDENTIFIERS.filter(({ within }) => holdsIn(file, within)).flatMap(({ old, instead }) =>
    old.flatMap((name) => {
      const line = identifiers.get(name)
      return line === undefined ? [] : { file, line, found: name, advice: `is an old name, now: ${instead}` }
    }),
  )
}

function checkFileName(file: string): Finding[] {
  if (!file.startsWith('server/')) return []
  const name = basename(file).replace(/\.test\.ts$/, '.ts')
  return FILES.filter(({ old }: NameRule) => old.includes(name)).map(({ instead }) => ({
    file,
    line: 1,
    found: name,
    advice: `is an old file name, now: ${instead}`,
  }))
}

function holdsIn(file: string, within: readonly string[] | undefined): boolean {
  return within === undefined || within.some((path) => file.startsWith(path))
}

function isAllowed(file: string, allowed: readonly { file: string }[] | undefined): boolean {
  return allowed?.some((exception) => exception.file === file) ?? false
}

function beginningOf(sentence: string): string {
  return sentence.split(/\s+/).slice(0, 8).join(' ')
}
