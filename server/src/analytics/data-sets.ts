// The data sets, made of what was read of a window: running sums for what is there, quotients for means and rates, all in
// the columns of the contract. A line of a chart (a region, a game mode, an exit code) has an entry for every bucket; a
// mean has none for a bucket in which there was nothing to take it of.
import type { AnalyticsDataSet, AnalyticsVariant } from '@musterhost/contract'
import { gameModeId, idOfName } from '../ids.ts'
import type { Gauges } from './facts.ts'
import type { FindBucket, Percentiles } from './find-durations.ts'
import type { ExitRow, LineKind, Lines } from './read.ts'

/** Lines of one data set. Of more, those with the most lobbies or exits are returned. */
const LINES_MAX = 100
const REGION_NAMES = ['region_id', 'region_name_id'] as const
const GAME_MODE_NAMES = ['game_mode_id', 'game_mode_name_id'] as const

export type AnalyticsNumbers = {
  /** Where the buckets begin that have begun. */
  starts: readonly number[]
  /** How much of a bucket has passed. */
  secondsOf: (start_ms: number) => number
  lines: Lines
  exits: readonly ExitRow[]
  finds: readonly FindBucket[]
  match_waits: readonly FindBucket[]
  now: Pick<Gauges, 'lobby_count' | 'player_count'>
}

/** A region, or a game mode. */
type PartLine = Lines['region' | 'game_mode'][number]
type Members = Required<AnalyticsDataSet>
type Variant = {
  needs: LineKind | 'exits' | 'finds' | 'match_waits' | 'now'
  compute: (numbers: AnalyticsNumbers) => Members[AnalyticsVariant]
}

const variant = <V extends AnalyticsVariant>(
  needs: Variant['needs'],
  compute: (numbers: AnalyticsNumbers) => Members[V],
): Variant => ({ needs, compute })

export const VARIANTS: Readonly<Record<AnalyticsVariant, Variant>> = {
  matchmaker_overview: variant<'matchmaker_overview'>('now', ({ now }) => now),

  player_count: variant<'player_count'>('all', ({ starts, lines }) => {
    const { player_count, player_unready_count } = allOf(lines)
    return { player_count, player_unready_count, ts: [...starts] }
  }),
  player_count_by_region: variant<'player_count_by_region'>('region', ({ starts, lines }) => {
    const { values, ...named } = byLine(starts, regions(lines), REGION_NAMES, ({ of }) => of.player_count)
    return { player_count: values, ...named }
  }),
  player_count_by_game_mode: variant<'player_count_by_game_mode'>('game_mode', ({ starts, lines }) => {
    const { values, ...named } = byLine(starts, gameModes(lines), GAME_MODE_NAMES, ({ of }) => of.player_count)
    return { player_count: values, ...named }
  }),

  lobby_count: variant<'lobby_count'>('all', ({ starts, lines }) => {
    const { lobby_closed_count, lobby_count, lobby_preemptive_count, lobby_unready_count } = allOf(lines)
    return { lobby_closed_count, lobby_count, lobby_preemptive_count, lobby_unready_count, ts: [...starts] }
  }),
  lobby_count_by_region: variant<'lobby_count_by_region'>('region', ({ starts, lines }) => {
    const { values, ...named } = byLine(starts, regions(lines), REGION_NAMES, ({ of }) => of.lobby_count)
    return { lobby_count: values, ...named }
  }),
  lobby_count_by_game_mode: variant<'lobby_count_by_game_mode'>('game_mode', ({ starts, lines }) => {
    const { values, ...named } = byLine(starts, gameModes(lines), GAME_MODE_NAMES, ({ of }) => of.lobby_count)
    return { lobby_count: values, ...named }
  }),

  avg_play_duration: variant<'avg_play_duration'>('all', ({ starts, lines }) => {
    const { played_ms, played_count } = allOf(lines)
    const { values, ts } = means(starts, played_ms, played_count)
    return { duration: values, ts }
  }),
  avg_play_duration_by_region: variant<'avg_play_duration_by_region'>('region', ({ lines }) =>
    playedByLine(regions(lines), REGION_NAMES),
  ),
  avg_play_duration_by_game_mode: variant<'avg_play_duration_by_game_mode'>('game_mode', ({ lines }) =>
    playedByLine(gameModes(lines), GAME_MODE_NAMES),
  ),

  new_players_per_second: variant<'new_players_per_second'>('all', (numbers) => ({
    new_player_count: ratesOf(numbers, allOf(numbers.lines).new_player_count),
    ts: [...numbers.starts],
  })),
  new_lobbies_per_second: variant<'new_lobbies_per_second'>('all', (numbers) => ({
    new_lobby_count: ratesOf(numbers, allOf(numbers.lines).new_lobby_count),
    ts: [...numbers.starts],
  })),

  destroyed_lobbies_by_failure: variant<'destroyed_lobbies_by_failure'>('all', ({ starts, lines }) => {
    const { stopped_lobby_count, failed_lobby_count } = allOf(lines)
    return {
      destroyed_lobby_count: failed_lobby_count.flatMap((failed, bucket) => [
        stopped_lobby_count[bucket]! - failed,
        failed,
      ]),
      failed: starts.flatMap(() => [false, true]),
      ts: starts.flatMap((ts) => [ts, ts]),
    }
  }),
  destroyed_lobbies_by_exit_code: variant<'destroyed_lobbies_by_exit_code'>('exits', ({ starts, exits }) => {
    const { values, ...named } = byLine(starts, exitLines(exits, starts.length), ['exit_code'], ({ counts }) => counts)
    return { destroyed_lobby_count: values, ...named }
  }),
  failed_lobbies: variant<'failed_lobbies'>('all', ({ starts, lines }) => ({
    destroyed_lobby_count: allOf(lines).failed_lobby_count,
    ts: [...starts],
  })),
  lobby_ready_time: variant<'lobby_ready_time'>('all', ({ starts, lines }) => {
    const { ready_ms, ready_lobby_count } = allOf(lines)
    const { values, ts } = means(starts, ready_ms, ready_lobby_count)
    return { ready_duration: values.map(Math.round), ts }
  }),
  find_duration: variant<'find_duration'>('finds', ({ starts, finds }) =>
    findColumns(
      finds.filter(({ bucket }) => bucket < starts.length),
      (bucket) => starts[bucket]!,
    ),
  ),
  match_wait: variant<'match_wait'>('match_waits', ({ starts, match_waits }) => {
    const waits = match_waits.filter(({ bucket }) => bucket < starts.length)
    return {
      request_count: waits.map(({ find_count }) => find_count),
      wait_p50: waits.map(({ duration_p50 }) => duration_p50),
      wait_p95: waits.map(({ duration_p95 }) => duration_p95),
      wait_p99: waits.map(({ duration_p99 }) => duration_p99),
      ts: waits.map(({ bucket }) => starts[bucket]!),
    }
  }),
}

/** The columns of buckets with finds. */
export function findColumns(finds: readonly FindBucket[], startOf: (bucket: number) => number) {
  const of = (name: keyof Percentiles): number[] => finds.map((find) => find[name])
  return {
    find_count: finds.map(({ find_count }) => find_count),
    duration_p50: of('duration_p50'),
    duration_p95: of('duration_p95'),
    duration_p99: of('duration_p99'),
    ts: finds.map(({ bucket }) => startOf(bucket)),
  }
}

function allOf({ all }: Lines) {
  return all[0]!.of
}

function ratesOf({ starts, secondsOf }: AnalyticsNumbers, counts: readonly number[]): number[] {
  return counts.map((count, bucket) => count / secondsOf(starts[bucket]!))
}

/** Returns the mean of each bucket that counted something; the other buckets have none. */
function means(starts: readonly number[], sums: readonly number[], counts: readonly number[]) {
  const buckets = [...starts.keys()].filter((bucket) => counts[bucket] !== 0)
  return {
    values: buckets.map((bucket) => sums[bucket]! / counts[bucket]!),
    ts: buckets.map((bucket) => starts[bucket]!),
  }
}

function regions({ region: lines }: Lines) {
  return largest(lines, lobbiesOf, ({ names }) => names[0]!).map(({ names, of }) => {
    const [region] = names as [string]
    return { names: { region_id: idOfName(region), region_name_id: region }, of }
  })
}

/** A game mode of the same name is another one in another game. */
function gameModes({ game_mode: lines }: Lines) {
  return largest(lines, lobbiesOf, ({ names }) => names.toReversed().join(' ')).map(({ names, of }) => {
    const [game_id, game_mode] = names as [string, string]
    return { names: { game_mode_id: gameModeId(game_id, game_mode), game_mode_name_id: game_mode }, of }
  })
}

function lobbiesOf({ of }: PartLine): number {
  return sum(of.lobby_count)
}

function exitLines(exits: readonly ExitRow[], bucket_count: number) {
  const counts_of = new Map<number, number[]>()
  for (const { bucket, exit_code, lobby_count } of exits) {
    const counts = counts_of.get(exit_code) ?? new Array<number>(bucket_count).fill(0)
    if (bucket < bucket_count) counts[bucket] = lobby_count
    counts_of.set(exit_code, counts)
  }
  const codes = largest(
    [...counts_of.keys()].toSorted((a, b) => a - b),
    (code) => sum(counts_of.get(code)!),
    (code) => String(code).padStart(11, '0'),
  )
  return codes.map((exit_code) => ({ names: { exit_code }, counts: counts_of.get(exit_code)! }))
}

/** The first buckets of all lines, then the second ones. */
function byLine<Name extends string, L extends { names: Record<Name, unknown> }>(
  starts: readonly number[],
  lines: readonly L[],
  names: readonly Name[],
  valuesOf: (line: L) => readonly number[],
) {
  const values = lines.map(valuesOf)
  const named = columnsOf(lines, names)
  for (const name of names) named[name] = starts.flatMap(() => named[name])
  return {
    ...named,
    values: starts.flatMap((_, bucket) => values.map((of_line) => of_line[bucket]!)),
    ts: starts.flatMap((ts) => lines.map(() => ts)),
  }
}

/** Mean play duration of each line over all buckets. Lines in which no play has ended are left out. */
function playedByLine<Name extends string>(
  lines: readonly (Pick<PartLine, 'of'> & { names: Record<Name, string> })[],
  names: readonly Name[],
) {
  const played = lines.filter(({ of }) => sum(of.played_count) !== 0)
  return {
    ...columnsOf(played, names),
    duration: played.map(({ of }) => sum(of.played_ms) / sum(of.played_count)),
  }
}

function columnsOf<Name extends string, L extends { names: Record<Name, unknown> }>(
  lines: readonly L[],
  names: readonly Name[],
) {
  const columns = names.map((name) => [name, lines.map((line) => line.names[name])])
  return Object.fromEntries(columns) as { [N in Name]: L['names'][N][] }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** Whether a data set would have more lines than LINES_MAX. */
export function isCut({ lines, exits }: Pick<AnalyticsNumbers, 'lines' | 'exits'>): boolean {
  const code_count = new Set(exits.map(({ exit_code }) => exit_code)).size
  return Math.max(lines.region.length, lines.game_mode.length, code_count) > LINES_MAX
}

/** LINES_MAX of them, in the order of their names. */
function largest<T>(items: readonly T[], sizeOf: (item: T) => number, nameOf: (item: T) => string): T[] {
  return items
    .map((item) => ({ item, size: sizeOf(item), name: nameOf(item) }))
    .toSorted((a, b) => b.size - a.size || byName(a, b))
    .slice(0, LINES_MAX)
    .toSorted(byName)
    .map(({ item }) => item)
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1
}
