// What a page of the documentation shows and asks for, in order: its blocks of code, and the addresses to open.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))

export type Block = {
  kind: 'block'
  line: number
  language: string
  /** What the comment in the line above says to the test, for example `not run: needs systemd`. */
  mark: string | null
  text: string
}
export type Address = { kind: 'open'; line: number; url: string }
export type Step = Block | Address

const FENCE = /^\s*```(.*)$/
const BLOCK_END = '```'
const MARK = /^<!-- (.+) -->$/
const OPEN = /\bOpen (?:the [^<]*)?<(http[^>]+)>/

export function stepsOf(markdown: string): Step[] {
  const lines = markdown.split('\n')
  const steps: Step[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const text = lines[index] ?? ''
    const line = index + 1
    const [, url] = OPEN.exec(text) ?? []
    if (url !== undefined) steps.push({ kind: 'open', line, url })
    const [, language] = FENCE.exec(text) ?? []
    if (language === undefined) continue
    const end = lines.indexOf(BLOCK_END, line)
    if (end === -1) throw new Error(`The block of line ${line} has no end.`)
    const [, mark = null] = MARK.exec(lines[index - 1] ?? '') ?? []
    steps.push({ kind: 'block', line, language, mark, text: lines.slice(line, end).join('\n') })
    index = end
  }
  return steps
}

/** `run by: x.test.ts` -> `run by` and `x.test.ts`. A mark without a colon has an empty value. */
export function readMark({ mark }: Block): { name: string; value: string } {
  const [name = '', ...rest] = (mark ?? '').split(': ')
  return { name, value: rest.join(': ') }
}

/** A file of this repository, by its path from the root. */
export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

/** For a block that is not run here: another test reads it from the page, or the page says why none can. */
export function explain(t: TestContext, page: string, step: Block): void {
  const place = `${page}:${step.line}`
  const { name, value } = readMark(step)
  if (name === 'run by') {
    const text = readPage(value)
    assert.ok(text.includes(basename(page)) && /readFile|readPage/.test(text), `${value} does not read ${page}`)
    return
  }
  assert.equal(name, 'not run', `${place} is neither run nor explained`)
  assert.ok(value.length > 10, `${place} does not say why it is not run`)
  t.diagnostic(`${place} is not run: ${value}`)
}
