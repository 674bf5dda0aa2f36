// What an import makes, and what it loses. The converters are pure: they read parsed JSON and report each construct that has no
// equal, with its path.

/** The block `matching` of a game mode, as the importers write it. */
export type ImportedMatching = {
  size?: { min: number; max: number }
  teams?: { name: string; min: number; max: number }[]
  attributes?: Record<string, { from?: 'player'; default?: unknown }>
  rules: MatchingRule[]
}
export type MatchingRule = {
  same?: string
  near?: string
  share?: string
  sum?: string
  ping?: 'region'
  balance?: string
  even_teams?: number
  within?: number
  at_least?: number
  between?: [number, number]
  party?: 'least' | 'greatest'
  widen?: Widening
  optional_after_s?: number
  weight?: number
}
/** A limit that changes by `by` every `every_s` seconds, until it is `to`. */
export type Widening = { every_s: number; by: number; to: number }
/** `path`: of the construct in the file. `message`: what it means there, and what is different here. */
export type Loss = { path: string; message: string }
export type Imported = { matching: ImportedMatching; losses: Loss[] }

export type Json = { readonly [name: string]: unknown }

/** Teams of a match. */
const TEAMS_MAX = 16
/** Players of a match that rules make. */
const PLAYERS_MAX = 100
const NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9_])?$/
/** Differences of numbers below it are of their binary form. */
const NEARLY = 1e-9

/** Collects what an import loses. */
export class Losses {
  readonly all: Loss[] = []

  add(path: string, message: string): void {
    this.all.push({ path, message })
  }

  /** Names every member of an object that the importer does not read. */
  others(value: Json, path: string, known: readonly string[]): void {
    for (const name of Object.keys(value)) {
      if (!known.includes(name)) this.add(join(path, name), 'The importer does not know this member.')
    }
  }
}

export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Whether a name fits; reports it otherwise. */
export function isName(name: unknown, path: string, losses: Losses): name is string {
  if (typeof name === 'string' && NAME.test(name)) return true
  losses.add(path, 'The name has other characters than letters, digits, _ and -, or more than 32. Rename it.')
  return false
}

/** Reports teams and matches that are too large. */
export function requireSizes({ teams = [], size }: ImportedMatching, losses: Losses): void {
  const players = Math.max(
    size?.max ?? 0,
    teams.reduce((sum, { max }) => sum + max, 0),
  )
  if (teams.length > TEAMS_MAX)
    losses.add('teams', `There are ${teams.length} teams; a match has at most ${TEAMS_MAX}.`)
  if (players > PLAYERS_MAX) losses.add('teams', `A match has ${players} players; rules make at most ${PLAYERS_MAX}.`)
}

/** A limit at a time. */
export type LimitStep = { at_s: number; value: number }

/** Null: the steps are not equal ones, so that no widening has their limits. */
export function wideningOf(first: number, steps: readonly LimitStep[]): Widening | null {
  const [one] = steps
  if (one === undefined) return null
  const by = one.value - first
  const isEven = steps.every(({ at_s, value }, index) => {
    const number = index + 1
    return at_s === number * one.at_s && Math.abs(value - first - number * by) < NEARLY
  })
  const last = steps.at(-1)!.value
  if (!isEven || by === 0 || one.at_s < 1 || !Number.isInteger(one.at_s)) return null
  return { every_s: one.at_s, by: Math.abs(by), to: last }
}
