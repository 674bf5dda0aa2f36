// The length of each function of a source file, and whether it is a factory: a function that hides mutable state in the
// functions that it returns.
import type { Node, Statement } from 'oxc-parser'
import { type Source, walk } from '../source/parse.ts'

export type FunctionFigure = { name: string; path: string; line: number; lines: number; is_factory: boolean }

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

export function readFunctions(source: Source): FunctionFigure[] {
  const figures: FunctionFigure[] = []
  walk(source.program, (node, ancestors) => {
    if (!FUNCTIONS.has(node.type)) return
    const line = source.lineOf(node.start)
    figures.push({
      name: nameOf(node, ancestors),
      path: source.path,
      line,
      lines: source.lineOf(node.end) - line + 1,
      is_factory: isFactory(node),
    })
  })
  return figures
}

function nameOf(node: Node, ancestors: readonly Node[]): string {
  if (node.type === 'FunctionDeclaration' && node.id !== null) return node.id.name
  const parent = ancestors.at(-1)!
  if (parent.type === 'VariableDeclarator' && parent.id.type === 'Identifier') return parent.id.name
  if (parent.type === 'MethodDefinition' || parent.type === 'Property' || parent.type === 'PropertyDefinition') {
    const { key } = parent
    if (key.type === 'Identifier') return key.name
    if (key.type === 'PrivateIdentifier') return `#${key.name}`
  }
  if (parent.type === 'CallExpression' && parent.callee.type === 'Identifier') {
    const [first] = parent.arguments
    const title = first?.type === 'Literal' && typeof first.value === 'string' ? ` '${first.value}'` : ''
    return `${parent.callee.name}(${title.trim()})`
  }
  return 'a function'
}

/** State, functions over it, and an object or a function that is returned: all in the body itself. */
function isFactory(node: Node): boolean {
  const body = 'body' in node && node.body !== null && !Array.isArray(node.body) ? (node.body as Node) : null
  if (body?.type !== 'BlockStatement') return false
  const statements = body.body as Statement[]
  const last = statements.findLast(({ type }) => type === 'ReturnStatement')
  if (last?.type !== 'ReturnStatement' || last.argument === null) return false
  const functions = new Set(statements.flatMap(functionsOf))
  return functions.size > 0 && statements.some(hasState) && returnsFunctions(last.argument, functions)
}

function functionsOf(statement: Statement): string[] {
  if (statement.type === 'FunctionDeclaration' && statement.id !== null) return [statement.id.name]
  if (statement.type !== 'VariableDeclaration') return []
  return statement.declarations.flatMap(({ id, init }) =>
    id.type === 'Identifier' && init !== null && FUNCTIONS.has(init.type) ? [id.name] : [],
  )
}

function hasState(statement: Statement): boolean {
  if (statement.type !== 'VariableDeclaration') return false
  if (statement.kind === 'let') return true
  return statement.declarations.some(
    ({ init }) =>
      init !== null &&
      (init.type === 'NewExpression' || (init.type === 'ArrayExpression' && init.elements.length === 0)),
  )
}

function returnsFunctions(value: Node, functions: ReadonlySet<string>): boolean {
  if (FUNCTIONS.has(value.type)) return true
  if (value.type === 'Identifier') return functions.has(value.name)
  if (value.type !== 'ObjectExpression') return false
  return value.properties.some(
    (property) =>
      property.type === 'Property' &&
      (FUNCTIONS.has(property.value.type) ||
        (property.value.type === 'Identifier' && functions.has(property.value.name))),
  )
}
