// The options that commands share. A command shows only those that it uses.
import { type Command, InvalidArgumentError } from 'commander'

export type GlobalOptions = {
  json?: boolean
  ci?: boolean
  context?: string
  url?: string
  game?: string
  namespace?: string
}

export function withOutput(command: Command): Command {
  return command
    .option('--json', 'print JSON, with the member names of the API')
    .option('--ci', 'ask nothing and draw no bars, as without a terminal')
}

/** For commands that call a platform. */
export function withPlatform(command: Command): Command {
  return withOutput(command)
    .option('--context <name>', 'the platform of this context (muster context list)')
    .option('--url <url>', 'the address of the platform; default MUSTER_URL')
}

/** For commands that act on a game. */
export function withGame(command: Command): Command {
  return withPlatform(command).option('--game <name>', 'name or id of the game; default GAME_ID, or the only game')
}

/** For commands that act on a namespace. */
export function withNamespace(command: Command): Command {
  return withGame(command).option('--namespace <name>', 'name or id of the namespace; default NAMESPACE_ID, or prod')
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 60 * 60_000,
  d: 24 * 60 * 60_000,
  w: 7 * 24 * 60 * 60_000,
}
const DURATION = /^(\d{1,6})([smhdw])$/

/** `90s`, `30m`, `12h`, `30d` or `2w`, as milliseconds. */
export function parseDuration(text: string): number {
  const [, digits, unit] = DURATION.exec(text) ?? []
  const duration_ms = Number(digits) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  if (duration_ms > 0) return duration_ms
  throw new InvalidArgumentError('It takes a number with a unit: 90s, 30m, 12h, 30d or 2w.')
}

/** A duration of at most this many days. */
export function parseDurationUpTo(days_max: number): (text: string) => number {
  return (text) => {
    const duration_ms = parseDuration(text)
    if (duration_ms <= days_max * UNIT_MS.d!) return duration_ms
    throw new InvalidArgumentError(`It is at most ${days_max}d.`)
  }
}

/** A moment: RFC 3339, or how long ago as a duration. The result is milliseconds since the epoch. */
export function parseMoment(now_ms: number): (text: string) => number {
  return (text) => {
    if (DURATION.test(text)) return now_ms - parseDuration(text)
    const ms = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
    if (!Number.isNaN(ms)) return ms
    throw new InvalidArgumentError('It takes a time like 2026-11-22T20:00:00Z, or how long ago: 90s, 30m, 12h, 30d.')
  }
}

export function parseWhole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,10}$/.test(text) && value >= min && value <= max) return value
    throw new InvalidArgumentError(`It takes a whole number from ${min} to ${max}.`)
  }
}
