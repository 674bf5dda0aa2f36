// Reads the passages of prose of a file: each paragraph, list item or table cell of its comments, of its strings and of
// a document is a passage of its own.
import type { Node } from 'oxc-parser'
import { parse, type Source, walk } from '../source/parse.ts'

export type Passage = {
  kind: 'comment' | 'string' | 'document'
  line: number
  text: string
}

/** `code` has every identifier of a program, with its first line. */
export type Reading = { passages: Passage[]; identifiers: Map<string, number> }

const PROGRAM = /\.(?:[cm]?[jt]s|tsx)$/
const DOCUMENT = /\.md$/
/** The generated part of a page: it is checked at its source. */
const GENERATED_PART = /<!-- generated: (.+) -->[\s\S]*?<!-- end of generated: \1 -->/g
const STYLE = /\.css$/
const HASH_COMMENTS =
  /\.(?:ya?ml|sh|service|example|toml|gd)$|(?:^|\/)(?:Containerfile|run|\.editorconfig|\.dockerignore)$/

/** Whether `read` finds anything in a file of this path. */
export function isReadable(path: string): boolean {
  return [PROGRAM, DOCUMENT, STYLE, HASH_COMMENTS].some((pattern) => pattern.test(path))
}

export function read(path: string, text: string): Reading {
  const nothing = { identifiers: new Map<string, number>() }
  if (PROGRAM.test(path)) return readProgram(parse(path, text))
  if (DOCUMENT.test(path)) return { ...nothing, passages: blocksOf(withoutGenerated(text), 1, 'document') }
  if (STYLE.test(path)) return { ...nothing, passages: readStyle(text) }
  return { ...nothing, passages: readHashComments(text) }
}

/** Line breaks are kept, so that lines can still be counted. */
function withoutGenerated(text: string): string {
  return text.replace(GENERATED_PART, (part) => part.replace(/[^\n]/g, ''))
}

function readProgram(source: Source): Reading {
  const passages = readComments(source)
  const identifiers = new Map<string, number>()
  walk(source.program, (node, ancestors) => {
    if ((node.type === 'Identifier' || node.type === 'PrivateIdentifier') && !identifiers.has(node.name)) {
      identifiers.set(node.name, source.lineOf(node.start))
    }
    const value = stringOf(node, ancestors)
    if (value === null) return
    passages.push(...blocksOf(withoutTags(value), source.lineOf(node.start), 'string').filter(isProse))
  })
  return { passages, identifiers }
}

/** Comments on lines that follow each other are one text. */
function readComments({ text, comments, lineOf }: Source): Passage[] {
  const passages: Passage[] = []
  let lines: { line: number; words: string }[] = []
  const flush = () => {
    const [first] = lines
    if (first !== undefined) {
      passages.push(...blocksOf(lines.map(({ words }) => words).join('\n'), first.line, 'comment'))
    }
    lines = []
  }
  for (const { type, value, start } of comments) {
    const line = lineOf(start)
    const is_alone = text.slice(text.lastIndexOf('\n', start - 1) + 1, start).trim() === ''
    if (type === 'Line' && is_alone) {
      if (lines.at(-1)?.line !== line - 1) flush()
      lines.push({ line, words: value.replace(/^ /, '') })
      continue
    }
    flush()
    const words = value.split('\n').map((part) => part.replace(/^\s*\*+ ?/, ''))
    passages.push(...blocksOf(words.join('\n'), line, 'comment'))
  }
  flush()
  return passages.filter(({ text: words }) => !/^(?:biome-ignore|@ts-|prettier-|v8 ignore)/.test(words))
}

/** Strings that are code: names of modules, types, and templates that a tag reads as another language. */
const CODE_TAGS = new Set(['sql', 'css'])

/** The text of a whole string, of a template or of strings that are added up; null for any other node. */
function stringOf(node: Node, ancestors: readonly Node[]): string | null {
  const parent = ancestors.at(-1)
  if (parent === undefined || isSum(parent) || isCode(parent)) return null
  if (parent.type === 'TaggedTemplateExpression' && CODE_TAGS.has(tagOf(parent))) return null
  return textOf(node)
}

function textOf(node: Node): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('CODE')
  if (isSum(node)) {
    const left = textOf(node.left)
    const right = textOf(node.right)
    return left === null && right === null ? null : `${left ?? 'CODE'}${right ?? 'CODE'}`
  }
  return null
}

function isSum(node: Node): node is Extract<Node, { type: 'BinaryExpression' }> {
  return node.type === 'BinaryExpression' && node.operator === '+'
}

function isCode({ type }: Node): boolean {
  return type.startsWith('Import') || type.startsWith('Export') || type === 'TSLiteralType' || type === 'TSImportType'
}

function tagOf({ tag }: Extract<Node, { type: 'TaggedTemplateExpression' }>): string {
  const callee = tag.type === 'MemberExpression' ? tag.object : tag
  return callee.type === 'Identifier' ? callee.name : ''
}

/** Ends a passage inside a line. */
const BREAK = '\u2029'

/** Tags of HTML become breaks, so that each text between them is a passage. */
function withoutTags(text: string): string {
  if (!/<\/?[a-z][^>]*>/i.test(text)) return text
  return text
    .replace(/<(style|script|pre|code)\b[\s\S]*?<\/\1>/gi, (code) => code.replace(/[^\n]/g, ' '))
    .replace(/<\/?(?:a|b|em|i|strong|span)\b[^>]*>/gi, '')
    .replace(/<[^>]*>/g, (tag) => BREAK + tag.replace(/[^\n]/g, ''))
}

const SQL =
  /^\s*(?:select|insert|update|delete|create|alter|drop|with|grant|revoke|set|lock|truncate|listen|notify|do \$)\b/i

/** A string is prose when it has three words and hardly anything else. Lines without any punctuation are a listing. */
function isProse({ text }: Passage): boolean {
  const tokens = text.split(/\s+/).filter((token) => token !== '')
  const words = tokens.filter((token) => /^["'(`“]*[\p{L}\p{N}][\p{L}\p{N}'’/_-]*[.,;:!?%"')`”]*$/u.test(token))
  if (words.length < 3 || words.length < tokens.length * 0.7) return false
  const is_listing = text.includes('\n') && !/[.,;:!?](?:\s|$)/.test(text)
  if (is_listing) return false
  return !(SQL.test(text) && /[=*$"]|\b(?:from|into|values|table|where|index|role|on)\b/i.test(text))
}

const FENCE = /^\s*(?:>\s*)*(`{3,}|~{3,})/
const LIST_ITEM = /^\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+/
const TABLE_RULE = /^\s*\|?[\s:|-]+\|[\s:|-]*$/

/** Splits a text in the form of Markdown into headings, paragraphs, list items and table cells; code blocks are left out. */
function blocksOf(text: string, first_line: number, kind: Passage['kind']): Passage[] {
  const blocks: Passage[] = []
  let block: { line: number; lines: string[] } | null = null
  let fence: string | null = null
  const flush = () => {
    if (block !== null) blocks.push({ kind, line: block.line, text: inlineOf(block.lines.join('\n')) })
    block = null
  }
  for (const [index, line] of text.split('\n').entries()) {
    const mark = FENCE.exec(line)?.[1]
    if (fence !== null || mark !== undefined) {
      flush()
      if (fence === null) fence = mark!
      else if (mark?.startsWith(fence)) fence = null
      continue
    }
    const content = line.replace(/^\s*(?:>\s?)*/, '')
    const number = first_line + index
    if (/^\|.*\|\s*$/.test(content)) {
      flush()
      if (TABLE_RULE.test(content)) continue
      for (const cell of cellsOf(content)) blocks.push({ kind, line: number, text: inlineOf(cell) })
      continue
    }
    const is_heading = /^#{1,6} /.test(content)
    if (content.trim() === '' || is_heading || LIST_ITEM.test(line) || content.startsWith('<!--')) flush()
    if (content.trim() === '') continue
    for (const [place, part] of content
      .replace(/^#{1,6} /, '')
      .replace(LIST_ITEM, '')
      .split(BREAK)
      .entries()) {
      if (place > 0) flush()
      block ??= { line: number, lines: [] }
      block.lines.push(part)
    }
    if (is_heading || content.trimEnd().endsWith('-->')) flush()
  }
  flush()
  return blocks.filter(({ text: words }) => words.trim() !== '')
}

function cellsOf(row: string): string[] {
  const code_free = row.replace(/`[^`]*`/g, (code) => code.replaceAll('|', '\u0000'))
  return code_free
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.replaceAll('\u0000', '|').trim())
}

/** Links keep their words; the marks of comments and pictures go. */
function inlineOf(text: string): string {
  return text
    .replace(/<!--|-->/g, '')
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replace(/\*\*|__/g, '')
}

function readStyle(text: string): Passage[] {
  return [...text.matchAll(/\/\*([\s\S]*?)\*\//g)].flatMap(({ index, 1: words = '' }) =>
    blocksOf(words, text.slice(0, index).split('\n').length, 'comment'),
  )
}

function readHashComments(text: string): Passage[] {
  const passages: Passage[] = []
  let lines: string[] = []
  let first = 0
  const flush = () => {
    if (lines.length > 0) passages.push(...blocksOf(lines.join('\n'), first, 'comment'))
    lines = []
  }
  for (const [index, line] of text.split('\n').entries()) {
    const words = /^\s*#(?!!)+ ?(.*)$/.exec(line)?.[1]
    if (words === undefined) flush()
    else {
      if (lines.length === 0) first = index + 1
      lines.push(words)
    }
  }
  flush()
  return passages
}
