// Where in a JSON text a member is: the path of a position, and the position of a path.
import { syntaxTree } from '@codemirror/language'
import type { EditorState } from '@codemirror/state'
import type { SyntaxNode } from '@lezer/common'

/** The names and indexes that lead to the innermost object or list around a position. */
export function pathAt(state: EditorState, position: number): string[] {
  const path: string[] = []
  let node: SyntaxNode | null = syntaxTree(state).resolveInner(position, -1)
  for (; node !== null; node = node.parent) {
    const { parent } = node
    if (node.name === 'Property') path.unshift(nameOf(state, node))
    if (parent?.name === 'Array' && node.name !== '[' && node.name !== ']') path.unshift(String(indexIn(parent, node)))
  }
  return path
}

function nameOf(state: EditorState, property: SyntaxNode): string {
  const name = property.getChild('PropertyName')
  return name === null ? '' : textOf(state, name)
}

/** The text between the quotes. Names of the config have no escapes. */
function textOf(state: EditorState, node: SyntaxNode): string {
  return state.sliceDoc(node.from, node.to).replace(/^"|"$/g, '')
}

function indexIn(list: SyntaxNode, item: SyntaxNode): number {
  let index = 0
  for (let child = list.firstChild; child !== null && child.from < item.from; child = child.nextSibling) {
    if (child.name !== '[' && child.name !== ',') index++
  }
  return index
}

/** The part of the text that a path names, or that of its nearest member that exists. */
export function rangeOf(state: EditorState, path: readonly string[]): { from: number; to: number } {
  let node = syntaxTree(state).topNode.firstChild
  let range = node === null ? { from: 0, to: 0 } : { from: node.from, to: Math.min(node.to, node.from + 1) }
  for (const name of path) {
    if (node === null) break
    if (node.name === 'Array') {
      const items = childrenOf(node)
      node = items[Number(name)] ?? null
      if (node !== null) range = { from: node.from, to: node.to }
      continue
    }
    const property: SyntaxNode | undefined = node.getChildren('Property').find((one) => nameOf(state, one) === name)
    if (property === undefined) break
    const key = property.getChild('PropertyName') ?? property
    range = { from: key.from, to: key.to }
    node = property.lastChild
  }
  return range
}

function childrenOf(list: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (let child = list.firstChild; child !== null; child = child.nextSibling) {
    if (!['[', ']', ','].includes(child.name)) children.push(child)
  }
  return children
}

/** Whether the position is in the name of a member, or where one could begin. */
export function isAtName(state: EditorState, position: number): boolean {
  const node = syntaxTree(state).resolveInner(position, -1)
  return node.name === 'PropertyName' || node.name === 'Object' || node.name === '{' || node.parent?.name === 'Object'
}
