// A TOML text, with the position of each member: what is wrong with one can be said with its line and column.
import { type AST, getStaticTOMLValue, ParseError, parseTOML, traverseNodes } from 'toml-eslint-parser'
import type { TextPosition } from './text-position.ts'

export type Toml = {
  value: Record<string, unknown>
  /** Where the member at `path` is; for one that is missing, the table that should have it. Null: nowhere in the text. */
  positionOf: (path: readonly string[]) => TextPosition | null
}

export class TomlSyntaxError extends Error {
  readonly position: TextPosition
  constructor(message: string, position: TextPosition) {
    super(message)
    this.name = 'TomlSyntaxError'
    this.position = position
  }
}

/** Throws a TomlSyntaxError; a key that stands twice in a table is one too. */
export function parseToml(text: string): Toml {
  let program: AST.TOMLProgram
  try {
    program = parseTOML(text)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    throw new TomlSyntaxError(error.message, { line: error.lineNumber, column: error.column + 1 })
  }
  return { value: getStaticTOMLValue(program), positionOf: (path) => findPosition(positionsOf(program), path) }
}

function findPosition(positions: ReadonlyMap<string, TextPosition>, path: readonly string[]): TextPosition | null {
  const [own, parent] = [path, path.slice(0, -1)].map((names) => positions.get(names.join('\0')))
  return own ?? (path.length > 1 ? parent : null) ?? null
}

/** The first position of each path, by its names with NUL between them. */
function positionsOf(program: AST.TOMLProgram): Map<string, TextPosition> {
  const positions = new Map<string, TextPosition>()
  // Paths of the nodes around the one that is visited.
  const around: string[][] = []
  traverseNodes(program, {
    enterNode(node, parent) {
      const path = [...(around.at(-1) ?? []), ...namesOf(node, parent)]
      around.push(path)
      const key = path.join('\0')
      const { line, column } = node.loc.start
      if (!positions.has(key)) positions.set(key, { line, column: column + 1 })
    },
    leaveNode() {
      around.pop()
    },
  })
  return positions
}

/** What a node adds to the path of the nodes around it. */
function namesOf(node: AST.TOMLNode, parent: AST.TOMLNode | null): string[] {
  if (node.type === 'TOMLTable') return node.resolvedKey.map(String)
  if (node.type === 'TOMLKeyValue') {
    return node.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value))
  }
  return parent?.type === 'TOMLArray' ? [String(parent.elements.indexOf(node as AST.TOMLContentNode))] : []
}
