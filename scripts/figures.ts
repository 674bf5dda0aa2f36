// `node scripts/figures.ts [--root FOLDER]`: counts what the code base has set itself as goals, over this checkout or
// another one. It prints the numbers as a table, then the files and functions behind them.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { listUndescribed } from '../contract/src/undescribed.ts'
import { circlesOf, readBoxes } from './arrows/boxes.ts'
import { readSources, readWorkspaces } from './arrows/read.ts'
import { type FunctionFigure, readFunctions } from './figures/functions.ts'
import { read } from './prose/passages.ts'
import { proseOf, sentencesOf } from './prose/sentences.ts'
import { parse } from './source/parse.ts'

const FILE_LINES = [400, 450]
const FUNCTION_LINES = [60, 80]
const FACTORY_LINES = 80
const SENTENCE_WORDS = [30, 40]
const ROOMS = ['server/src/matchmaker', 'server/src/edge']
const PROGRAM = /\.(?:[cm]?[jt]s|tsx|css)$/

/** Tables of data: their length is the length of what they list. */
const DATA = [
  { path: 'server/src/database/schema.ts', why: 'A member for each column of each table.' },
  { path: 'server/src/database/schema/', why: 'A member for each column of each table.' },
  { path: 'server/src/database/migrations/', why: 'Statements that are never changed.' },
  { path: 'contract/src/errors.ts', why: 'An entry for each error.' },
  { path: 'contract/src/error-help.ts', why: 'An entry for each error.' },
  { path: 'scripts/prose/words.ts', why: 'An entry for each word.' },
]

const { values } = parseArgs({ options: { root: { type: 'string' } } })
const root = resolve(values.root ?? join(import.meta.dirname, '..'))
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trimEnd().split('\n')
const details: string[] = []

console.log('| figure | sources | tests |\n| --- | --- | --- |')
printFiles()
printFunctions()
console.log('\n| figure | value |\n| --- | --- |')
printRooms()
printDocuments()
console.log(`\n${details.join('\n')}`)

function printFiles(): void {
  const lengths = files
    .filter((path) => PROGRAM.test(path) && !DATA.some((data) => path.startsWith(data.path)))
    .map((path) => ({ path, lines: textOf(path).split('\n').length - 1 }))
    .sort((a, b) => b.lines - a.lines)
  for (const limit of FILE_LINES) {
    const long = lengths.filter(({ lines }) => lines > limit)
    console.log(`| files over ${limit} lines, without tables of data | ${bySide(long)} |`)
  }
  detail(`Files over ${FILE_LINES[0]} lines`, lengths.filter(({ lines }) => lines > FILE_LINES[0]!).map(line))
}

function printFunctions(): void {
  const functions = files
    .filter((path) => PROGRAM.test(path) && !path.endsWith('.css'))
    .flatMap((path) => readFunctions(parse(path, textOf(path))))
    .sort((a, b) => b.lines - a.lines)
  for (const limit of FUNCTION_LINES) {
    console.log(`| functions over ${limit} lines | ${bySide(functions.filter(({ lines }) => lines > limit))} |`)
  }
  const factories = functions.filter(({ lines, is_factory }) => is_factory && lines > FACTORY_LINES)
  console.log(`| factories over ${FACTORY_LINES} lines with hidden state | ${bySide(factories)} |`)
  const long = functions.filter(({ lines }) => lines > FUNCTION_LINES[0]!)
  detail(`Functions over ${FUNCTION_LINES[0]} lines`, long.map(functionLine))
  detail(`Factories over ${FACTORY_LINES} lines`, factories.map(functionLine))
}

function printRooms(): void {
  const sources = readSources(root, readWorkspaces(root)).filter(({ path }) => !isTest(path))
  for (const room of ROOMS) {
    const inside = readBoxes(room, sources)
    const circles = circlesOf(inside)
    console.log(
      `| ${room}: boxes, arrows, circles | ${inside.boxes.length}, ${inside.arrows.size}, ${circles.length} |`,
    )
    detail(
      `Circles of ${room}`,
      circles.map((circle) => circle.join(', ')),
    )
  }
}

function printDocuments(): void {
  console.log(`| lines of ARCHITECTURE.md | ${textOf('ARCHITECTURE.md').split('\n').length - 1} |`)
  const document = JSON.parse(textOf('contract/openapi.json')) as Parameters<typeof listUndescribed>[0]
  console.log(`| members of the contract without a description | ${listUndescribed(document).length} |`)
  const documents = files.filter((path) => path === 'ARCHITECTURE.md' || /^docs\/.*\.md$/.test(path))
  const sentences = documents.flatMap((path) =>
    read(path, textOf(path)).passages.flatMap(({ line: number, text }) =>
      sentencesOf(proseOf(text)).map(({ words }) => ({ path, line: number, words })),
    ),
  )
  for (const limit of SENTENCE_WORDS) {
    const long = sentences.filter(({ words }) => words > limit)
    console.log(`| sentences over ${limit} words in docs/ and ARCHITECTURE.md | ${long.length} |`)
  }
}

function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

function bySide(list: readonly { path: string }[]): string {
  const tests = list.filter(({ path }) => isTest(path)).length
  return `${list.length - tests} | ${tests}`
}

function isTest(path: string): boolean {
  return path.startsWith('server/test/') || /\.test\.[a-z]+$/.test(path)
}

function line({ path, lines }: { path: string; lines: number }): string {
  return `${lines} ${path}`
}

function functionLine({ name, path, line: number, lines }: FunctionFigure): string {
  return `${lines} ${path}:${number} ${name}`
}

function detail(title: string, lines: readonly string[]): void {
  if (lines.length > 0) details.push(`${title}:`, ...lines.map((words) => `  ${words}`))
}
