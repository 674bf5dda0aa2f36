// The headers that a version's routes add to the files of its site. They are computed once per file and cached with the
// routes. The routes were validated when the version was created.
import type { CdnRoute } from '../version-config.ts'
import { plainTypeOf } from './content-type.ts'

/** Files of one version whose headers are cached. */
const ROUTED_FILES_MAX = 2_000

export type SiteHeaders = {
  /** Null: the file's own. */
  content_type: string | null
  cache_control: string | null
  /** Names and values, one after the other. */
  others: string[]
}

const NOTHING: SiteHeaders = { content_type: null, cache_control: null, others: [] }

/** Returns a function from a file's path, without a leading slash, to its headers. */
export function createSiteHeaders(routes: readonly CdnRoute[]): (path: string) => SiteHeaders {
  if (routes.length === 0) return () => NOTHING
  // By rising priority: a later route overwrites the headers of an earlier one.
  const ordered = routes
    .map((route, index) => ({ ...route, index, matches: createGlob(route.glob.normalize('NFC')) }))
    .sort((a, b) => a.priority - b.priority || b.index - a.index)
  const cache = new Map<string, SiteHeaders>()
  /** By the routes that match: files with the same ones share an entry. */
  const made = new Map<string, SiteHeaders>()

  return (path) => {
    const known = cache.get(path)
    if (known !== undefined) return known
    const matching = ordered.filter((route) => route.matches(path))
    const key = matching.map((route) => route.index).join()
    const headers = made.get(key) ?? headersOf(matching)
    if (cache.size >= ROUTED_FILES_MAX) {
      cache.clear()
      made.clear()
    }
    made.set(key, headers)
    cache.set(path, headers)
    return headers
  }
}

function headersOf(routes: readonly CdnRoute[]): SiteHeaders {
  const headers = new Map<string, string>()
  for (const { middlewares } of routes) {
    const all = middlewares.flatMap(({ kind }) => kind.custom_headers.headers)
    for (const { name, value } of all) headers.set(name.toLowerCase(), value)
  }
  const content_type = headers.get('content-type')
  const cache_control = headers.get('cache-control') ?? null
  headers.delete('content-type')
  headers.delete('cache-control')
  return { content_type: content_type ? plainTypeOf(content_type) : null, cache_control, others: [...headers].flat() }
}

type Token = { kind: 'one' | 'segment' | 'any' | 'folders' } | { kind: 'character'; character: string }

const WILDCARDS = [
  ['**/', 'folders'],
  ['**', 'any'],
  ['*', 'segment'],
  ['?', 'one'],
] as const

/**
 * `*` matches anything but a slash, `**` anything, `**` and a slash any number of folders, `?` one character but a slash. All
 * positions in the glob that match so far are followed together, so the time is bounded by the product of both lengths.
 */
export function createGlob(glob: string): (path: string) => boolean {
  const tokens: Token[] = []
  for (let index = 0; index < glob.length; ) {
    const wildcard = WILDCARDS.find(([text]) => glob.startsWith(text, index))
    const is_folders = wildcard?.[1] === 'folders' && index > 0 && glob[index - 1] !== '/'
    if (wildcard === undefined) {
      const character = String.fromCodePoint(glob.codePointAt(index)!)
      tokens.push({ kind: 'character', character })
      index += character.length
    } else {
      tokens.push({ kind: is_folders ? 'any' : wildcard[1] })
      index += is_folders ? 2 : wildcard[0].length
    }
  }

  return (path) => {
    let positions = new Set<number>()
    const enter = (into: Set<number>, position: number): void => {
      if (into.has(position)) return
      into.add(position)
      const kind = tokens[position]?.kind
      // These also match the empty string.
      if (kind === 'any' || kind === 'segment' || kind === 'folders') enter(into, position + 1)
    }
    enter(positions, 0)
    for (const character of path) {
      const next = new Set<number>()
      for (const position of positions) step(tokens[position], character, position, next, enter)
      if (next.size === 0) return false
      positions = next
    }
    return positions.has(tokens.length)
  }
}

type Enter = (into: Set<number>, position: number) => void

function step(token: Token | undefined, character: string, position: number, next: Set<number>, enter: Enter): void {
  switch (token?.kind) {
    case 'character':
      if (token.character === character) enter(next, position + 1)
      break
    case 'one':
      if (character !== '/') enter(next, position + 1)
      break
    case 'segment':
      if (character !== '/') enter(next, position)
      break
    case 'any':
      enter(next, position)
      break
    case 'folders':
      // The wildcard cannot end within a folder's name: the token after it begins after a slash.
      next.add(position)
      if (character === '/') enter(next, position + 1)
      break
    default:
  }
}
