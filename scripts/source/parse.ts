// Parses a source file with oxc-parser, for the checks that need more than lines: its comments, its strings, its names
// and its functions. oxc-parser is the parser of knip, so it is installed in any case.
import { type Comment, type Node, type Program, parseSync } from 'oxc-parser'

export type Source = {
  path: string
  text: string
  program: Program
  comments: readonly Comment[]
  /** The line of an offset in `text`, from 1. */
  lineOf: (offset: number) => number
}

export function parse(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]!.message}`)
  return { path, text, program, comments, lineOf: lineIndex(text) }
}

/** Calls `visit` with each node and its ancestors, the nearest last. The walk skips the inside where `visit` returns false. */
export function walk(
  node: Node,
  visit: (node: Node, ancestors: readonly Node[]) => unknown,
  ancestors: readonly Node[] = [],
): void {
  if (visit(node, ancestors) === false) return
  const inner = [...ancestors, node]
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit, inner)
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** Returns a function from an offset in `text` to its line, from 1. */
function lineIndex(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let low = 0
    let high = starts.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (starts[middle]! <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}
