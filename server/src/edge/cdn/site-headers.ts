// The headers that a version's routes add to the files of its site. Which of them a file gets is worked out once for a
// file and remembered with the routes; what may stand in a route was checked when the version was made.
import type { CdnRoute } from '@muster/contract'
import { plainTypeOf } from '../../objects/content-type.ts'
import type { RawHeaders } from '../http/head.ts'
import { ROUTED_FILES_MAX } from '../limits.ts'

export type SiteHeaders = {
  /** Names in lower case; null where the file has what it has anyway. */
  content_type: string | null
  cache_control: string | null
  others: RawHeaders
}

const NOTHING: SiteHeaders = { content_type: null, cache_control: null, others: [] }

/** Answers the headers of the file at a path, without a slash in front. */
export function createSiteHeaders(routes: readonly CdnRoute[]): (path: string) => SiteHeaders {
  if (routes.length === 0) return () => NOTHING
  // From the weakest to the strongest: a later one overwrites.
  const ordered = routes
    .map((route, index) => ({ ...route, index, matches: createGlob(route.glob) }))
    .sort((a, b) => a.priority - b.priority || b.index - a.index)
  const remembered = new Map<string, SiteHeaders>()
  /** By which routes match: files that are alike share one. */
  const made = new Map<string, SiteHeaders>()

  return (path) => {
    const known = remembered.get(path)
    if (known !== undefined) return known
    const matching = ordered.filter((route) => route.matches(path))
    const key = matching.map((route) => route.index).join()
    const headers = made.get(key) ?? headersOf(matching)
    if (remembered.size >= ROUTED_FILES_MAX) {
      remembered.clear()
      made.clear()
    }
    made.set(key, headers)
    remembered.set(path, headers)
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
 * `*` is anything but a slash, `**` anything, `**` and a slash any number of folders, `?` one character but a slash. The places
 * in the glob at which the path may be are followed side by side: the time is bounded by the product of both lengths.
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
    let places = new Set<number>()
    const enter = (into: Set<number>, place: number): void => {
      if (into.has(place)) return
      into.add(place)
      const kind = tokens[place]?.kind
      // These may stand for nothing.
      if (kind === 'any' || kind === 'segment' || kind === 'folders') enter(into, place + 1)
    }
    enter(places, 0)
    for (const character of path) {
      const next = new Set<number>()
      for (const place of places) step(tokens[place], character, place, next, enter)
      if (next.size === 0) return false
      places = next
    }
    return places.has(tokens.length)
  }
}

type Enter = (into: Set<number>, place: number) => void

function step(token: Token | undefined, character: string, place: number, next: Set<number>, enter: Enter): void {
  switch (token?.kind) {
    case 'character':
      if (token.character === character) enter(next, place + 1)
      break
    case 'one':
      if (character !== '/') enter(next, place + 1)
      break
    case 'segment':
      if (character !== '/') enter(next, place)
      break
    case 'any':
      enter(next, place)
      break
    case 'folders':
      // In the middle of a folder's name it cannot end: what follows it begins after a slash.
      next.add(place)
      if (character === '/') enter(next, place + 1)
      break
    default:
  }
}
