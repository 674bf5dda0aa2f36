// Finds the line and column of an error in a JSON body, for the person who wrote it. A body is parsed again here only after
// an error. A body on a single line was written by a program: its messages are left unchanged.
import { type ErrorDetail, validationError } from '@musterhost/contract'
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { positionText, type TextPosition } from '../text/text-position.ts'

/** Larger bodies are not kept to be read again. The largest version configs are a few tens of KiB. */
export const LOCATED_BODY_BYTES_MAX = 256 * 1024
/** The parser is recursive: this depth stays far below the end of the stack. */
const DEPTH_MAX = 500
/** An error list of the contract has at most 32 entries. Lists made elsewhere are cut to this length here. */
const LOCATED_ERRORS_MAX = 64

const STRICT_JSON = { disallowComments: true, allowTrailingComma: false }

/** Describes where JSON.parse failed, as a sentence. Null: the text is too long or too deep to be parsed again. */
export function syntaxErrorOf(text: string): string | null {
  if (!isReadable(text)) return null
  const errors: ParseError[] = []
  parseTree(text, errors, STRICT_JSON)
  const [first] = errors
  if (first === undefined) return null
  const [begin, ...words] = printParseErrorCode(first.error).split(/(?=[A-Z])/)
  const what = [begin, ...words.map((word) => word.toLowerCase())].join(' ')
  return `The body is not valid JSON: ${what}${positionText(positionAt(text, first.offset))}.`
}

/** Throws VALIDATION_ERROR that names the first duplicate member. */
export function refuseDuplicate(text: string): never {
  const found = isReadable(text) ? findDuplicate(parseTree(text, [], STRICT_JSON)) : null
  const name = found === null ? 'A member' : found.path.join('.')
  const position = found === null ? '' : positionText(positionAt(text, found.offset))
  throw validationError([
    {
      path: found?.path ?? [],
      reason: 'not_unique',
      message: `${name} stands twice in the body${position}. Keep one.`,
    },
  ])
}

/**
 * Adds line and column to the message of each error whose member is found in `text`. `document`: the member of the body
 * that paths may be relative to.
 */
export function addPositions(errors: readonly ErrorDetail[], text: string, document: string | null): ErrorDetail[] {
  if (!text.includes('\n') || errors.length > LOCATED_ERRORS_MAX || !isReadable(text)) return [...errors]
  const root = parseTree(text, [], STRICT_JSON)
  if (root === undefined) return [...errors]
  return errors.map((error) => {
    const node = findMember(root, error.path) ?? (document && findMember(root, [document, ...error.path]))
    if (!node) return error
    const { line, column } = positionAt(text, node.offset)
    return { ...error, message: `Line ${line}, column ${column}: ${error.message}` }
  })
}

/** The node of the member at `path`; for one that is missing, the object that should have it. */
function findMember(root: Node, path: readonly string[]): Node | null {
  let node = root
  for (const [index, name] of path.entries()) {
    const next = childOf(node, name)
    if (next === undefined && (index === 0 || index < path.length - 1)) return null
    if (next === undefined) break
    node = next
  }
  // A member begins at its name; an element of a list has none.
  return node.parent?.type === 'property' ? node.parent : node
}

function childOf(node: Node, name: string): Node | undefined {
  if (node.type === 'array') return node.children?.[Number(name)]
  if (node.type !== 'object') return undefined
  return node.children?.find((property) => property.children?.[0]?.value === name)?.children?.[1]
}

function findDuplicate(root: Node | undefined): { path: string[]; offset: number } | null {
  const waiting = root === undefined ? [] : [{ node: root, path: [] as string[] }]
  // It ends: a tree has each node once.
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const names = new Set<string>()
    for (const [index, child] of (next.node.children ?? []).entries()) {
      const [key, value] = child.type === 'property' ? (child.children ?? []) : []
      const name = key === undefined ? String(index) : String(key.value)
      const path = [...next.path, name]
      if (key !== undefined && names.has(name)) return { path, offset: child.offset }
      names.add(name)
      const below = key === undefined ? child : value
      if (below !== undefined) waiting.push({ node: below, path })
    }
  }
  return null
}

function isReadable(text: string): boolean {
  if (text.length > LOCATED_BODY_BYTES_MAX) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x7b || code === 0x5b) depth++
    else if (code === 0x7d || code === 0x5d) depth--
    if (depth > DEPTH_MAX) return false
  }
  return true
}

function positionAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
