// The text of muster.yaml as a value, with the line and column of each member. YAML includes JSON, so one reader serves both.
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'

/** Uses of anchors, each multiplied by what it contains: a short file must not become a huge value. */
const ALIASES_MAX = 100
/** Faults of the text that are reported: after the first ones, the rest are consequences. */
const TEXT_FAULTS_MAX = 8

export type Position = { line: number; column: number }
export type TextFault = Position & { path: string[]; reason: string; message: string; remedy: string }

export type ProjectDocument = {
  /** Undefined: the text has faults. */
  value: unknown
  faults: TextFault[]
  positions: Positions
}

/** The first line and column are 1. */
export class Positions {
  readonly #lines: LineCounter
  readonly #root: Node | null

  constructor(lines: LineCounter, root: Node | null) {
    this.#lines = lines
    this.#root = root
  }

  /** Where a member stands: its name, or the value of a list. The nearest member around it when it does not exist. */
  of(path: readonly string[]): Position {
    return this.#find(path).name
  }

  /** Where the value of a member stands, if it is a single value; otherwise where the member stands. */
  ofValue(path: readonly string[]): Position {
    const { name, value } = this.#find(path)
    return value ?? name
  }

  #find(path: readonly string[]): { name: Position; value: Position | null } {
    let node = this.#root
    let name = at(0, this.#lines)
    for (const step of path) {
      const pair = isMap(node) ? node.items.find(({ key }) => textOf(key) === step) : undefined
      const item = isSeq(node) ? (node.items[Number(step)] as Node | undefined) : undefined
      const named = (pair?.key ?? item) as Node | undefined
      if (named === undefined) return { name, value: null }
      name = at(named.range?.[0] ?? 0, this.#lines)
      node = (pair === undefined ? item : (pair.value as Node | null)) ?? null
      // What an alias stands for is elsewhere in the file, and may be used by several members.
      if (isAlias(node)) node = null
    }
    return { name, value: isScalar(node) ? at(node.range?.[0] ?? 0, this.#lines) : null }
  }
}

function at(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(line, 1), column: Math.max(col, 1) }
}

export function readDocument(text: string): ProjectDocument {
  const lines = new LineCounter()
  try {
    const document = parseDocument<ParsedNode>(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
    const positions = new Positions(lines, document.contents)
    // A warning is a tag that nothing here knows: its value would not be what was meant.
    const errors = [...document.errors, ...document.warnings]
    const faults = errors.slice(0, TEXT_FAULTS_MAX).map((error) => faultOf(error, text, lines))
    visit(document, {
      Pair: (_key, { key }) => {
        if (isScalar(key) || faults.length >= TEXT_FAULTS_MAX) return
        faults.push({ path: [], reason: 'bad_name', ...at((key as Node | null)?.range?.[0] ?? 0, lines), ...BAD_NAME })
      },
      Alias: (_key, alias) => {
        if (alias.resolve(document) !== undefined || faults.length >= TEXT_FAULTS_MAX) return
        faults.push({ path: [], reason: 'bad_alias', ...at(alias.range?.[0] ?? 0, lines), ...UNKNOWN_ALIAS })
      },
    })
    if (faults.length > 0) return { value: undefined, faults, positions }
    return { value: document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown, faults, positions }
  } catch (error) {
    const fault = { line: 1, column: 1, path: [], ...unreadable(error) }
    return { value: undefined, faults: [fault], positions: new Positions(lines, null) }
  }
}

function unreadable(error: unknown): Pick<TextFault, 'reason' | 'message' | 'remedy'> {
  if (error instanceof ReferenceError) {
    return {
      reason: 'too_many_aliases',
      message: `Aliases (*name) repeat more than ${ALIASES_MAX} values, or contain themselves.`,
      remedy: 'Write the values out, or put them into the matchmaker section, from which game modes inherit.',
    }
  }
  throw error
}

const UNKNOWN_ALIAS = {
  message: 'The alias (*name) has no anchor (&name) before it.',
  remedy: 'Add the anchor, or put a text that begins with * in quotes.',
}

const BAD_NAME = {
  message: 'The name of a member must be text.',
  remedy: 'Put a value that begins with { or [ in quotes.',
}

const REMEDIES: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'Remove one of the two.',
  TAB_AS_INDENT: 'Indent with blanks: YAML allows no tabs there.',
  BAD_INDENT: 'Members of one section have the same indentation.',
  MULTIPLE_DOCS: 'Remove the line --- and what comes after it.',
  TAG_RESOLVE_FAILED: 'Remove the tag (!name): values need none.',
  RESOURCE_EXHAUSTION: 'No section of the file needs more than ten levels.',
}

function faultOf({ code, message, pos }: YAMLError, text: string, lines: LineCounter): TextFault {
  const name = /^[^\s:#,{}[\]]{1,64}/
    .exec(text.slice(pos[0], pos[0] + 64).replace(/^["']/, ''))?.[0]
    .replace(/["']$/, '')
  const is_twice = code === 'DUPLICATE_KEY' && name !== undefined
  return {
    ...at(pos[0], lines),
    path: is_twice ? [name] : [],
    reason: code.toLowerCase(),
    message: is_twice ? `${name} is there twice.` : sentence(message),
    remedy: REMEDIES[code] ?? 'Values with : # { } [ ] & * ! in them are put in quotes.',
  }
}

/** A message of the YAML reader begins with a capital letter, and may end without a full stop. */
function sentence(text: string): string {
  const [first = ''] = text.split('\n')
  return `${first.replace(/[.:]$/, '')}.`
}

function textOf(key: unknown): string | null {
  return isScalar(key) ? String(key.value) : null
}
