// The data sets, made of what was read of a window: running sums for what is there, quotients for means and rates, all in
// the columns of the contract. A line of a chart (a region, a game mode, an exit code) has an entry for every bucket; a
// mean has none for a bucket in which there was nothing to take it of.
import type { AnalyticsDataSet, AnalyticsVariant } from '@muster/contract'
import { idOfName } from '../../ids.ts'
import { GAUGES, type Gauges } from './facts.ts'
import type { BucketRow, ExitRow, Grouping } from './read.ts'
import { SUM_NAMES, type Sums } from './roll-ups.ts'

/** Lines of one data set: of more, those that had the most lobbies, or exits, are told. */
const LINES_MAX = 100

export type Numbers = {
  /** Where the buckets begin that have begun. */
  starts: readonly number[]
  /** How much of a bucket has passed. */
  secondsOf: (start_ms: number) => number
  rows: readonly BucketRow[]
  exits: readonly ExitRow[]
  now: Pick<Gauges, 'lobby_count' | 'player_count'>
}

/** What there was at the end of a bucket, and what happened in it. */
type Cell = Gauges & Sums & { ts: number }
type Line = Pick<BucketRow, 'region' | 'game_id' | 'game_mode'> & { cells: Cell[] }
type Members = Required<AnalyticsDataSet>
type Variant = { needs: Grouping | 'exits' | 'now'; tell: (numbers: Numbers) => Members[AnalyticsVariant] }

const variant = <V extends AnalyticsVariant>(
  needs: Variant['needs'],
  tell: (numbers: Numbers) => Members[V],
): Variant => ({ needs, tell })

export const VARIANTS: Readonly<Record<AnalyticsVariant, Variant>> = {
  matchmaker_overview: variant<'matchmaker_overview'>('now', ({ now }) => now),

  player_count: variant<'player_count'>('all', (numbers) =>
    columns(['player_count', 'player_unready_count', 'ts'], cellsOfAll(numbers)),
  ),
  player_count_by_region: variant<'player_count_by_region'>('region', (numbers) =>
    columns(['player_count', 'region_id', 'region_name_id', 'ts'], cellsByRegion(numbers)),
  ),
  player_count_by_game_mode: variant<'player_count_by_game_mode'>('game_mode', (numbers) =>
    columns(['player_count', 'game_mode_id', 'game_mode_name_id', 'ts'], cellsByGameMode(numbers)),
  ),

  lobby_count: variant<'lobby_count'>('all', (numbers) =>
    columns(
      ['lobby_closed_count', 'lobby_count', 'lobby_preemptive_count', 'lobby_unready_count', 'ts'],
      cellsOfAll(numbers),
    ),
  ),
  lobby_count_by_region: variant<'lobby_count_by_region'>('region', (numbers) =>
    columns(['lobby_count', 'region_id', 'region_name_id', 'ts'], cellsByRegion(numbers)),
  ),
  lobby_count_by_game_mode: variant<'lobby_count_by_game_mode'>('game_mode', (numbers) =>
    columns(['lobby_count', 'game_mode_id', 'game_mode_name_id', 'ts'], cellsByGameMode(numbers)),
  ),

  avg_play_duration: variant<'avg_play_duration'>('all', (numbers) =>
    columns(['duration', 'ts'], cellsOfAll(numbers).flatMap(withDuration)),
  ),
  avg_play_duration_by_region: variant<'avg_play_duration_by_region'>('region', (numbers) =>
    columns(
      ['duration', 'region_id', 'region_name_id'],
      totalsOf(numbers, 'region').map(withRegion).flatMap(withDuration),
    ),
  ),
  avg_play_duration_by_game_mode: variant<'avg_play_duration_by_game_mode'>('game_mode', (numbers) =>
    columns(
      ['duration', 'game_mode_id', 'game_mode_name_id'],
      totalsOf(numbers, 'game_mode').map(withGameMode).flatMap(withDuration),
    ),
  ),

  new_players_per_second: variant<'new_players_per_second'>('all', (numbers) =>
    columns(
      ['new_player_count', 'ts'],
      cellsOfAll(numbers).map(({ ts, new_player_count }) => {
        return { ts, new_player_count: new_player_count / numbers.secondsOf(ts) }
      }),
    ),
  ),
  new_lobbies_per_second: variant<'new_lobbies_per_second'>('all', (numbers) =>
    columns(
      ['new_lobby_count', 'ts'],
      cellsOfAll(numbers).map(({ ts, new_lobby_count }) => {
        return { ts, new_lobby_count: new_lobby_count / numbers.secondsOf(ts) }
      }),
    ),
  ),

  destroyed_lobbies_by_failure: variant<'destroyed_lobbies_by_failure'>('all', (numbers) =>
    columns(
      ['destroyed_lobby_count', 'failed', 'ts'],
      cellsOfAll(numbers).flatMap(({ ts, stopped_lobby_count, failed_lobby_count }) => [
        { ts, failed: false, destroyed_lobby_count: stopped_lobby_count - failed_lobby_count },
        { ts, failed: true, destroyed_lobby_count: failed_lobby_count },
      ]),
    ),
  ),
  destroyed_lobbies_by_exit_code: variant<'destroyed_lobbies_by_exit_code'>('exits', (numbers) =>
    columns(['destroyed_lobby_count', 'exit_code', 'ts'], exitsOf(numbers)),
  ),
  failed_lobbies: variant<'failed_lobbies'>('all', (numbers) =>
    columns(
      ['destroyed_lobby_count', 'ts'],
      cellsOfAll(numbers).map(({ ts, failed_lobby_count }) => ({ ts, destroyed_lobby_count: failed_lobby_count })),
    ),
  ),
  lobby_ready_time: variant<'lobby_ready_time'>('all', (numbers) =>
    columns(
      ['ready_duration', 'ts'],
      cellsOfAll(numbers).flatMap(({ ts, ready_ms, ready_lobby_count }) =>
        ready_lobby_count === 0 ? [] : [{ ts, ready_duration: Math.round(ready_ms / ready_lobby_count) }],
      ),
    ),
  ),
}

/** Records as parallel arrays of their members. */
function columns<N extends string, R extends Record<N, unknown>>(
  names: readonly N[],
  records: readonly R[],
): { [Name in N]: R[Name][] } {
  const arrays = names.map((name) => [name, records.map((record) => record[name])])
  return Object.fromEntries(arrays) as { [Name in N]: R[Name][] }
}

function cellsOfAll(numbers: Numbers): Cell[] {
  return linesOf(numbers, 'all')[0]!.cells
}

function cellsByRegion(numbers: Numbers) {
  return interleave(linesOf(numbers, 'region').map(({ cells, ...line }) => named(cells, withRegion(line))))
}

function cellsByGameMode(numbers: Numbers) {
  return interleave(linesOf(numbers, 'game_mode').map(({ cells, ...line }) => named(cells, withGameMode(line))))
}

/** A name is worked out once for all cells of its line. */
function named<N>(cells: readonly Cell[], names: N): (Cell & N)[] {
  return cells.map((cell) => ({ ...cell, ...names }))
}

/** The first cells of all lines, then the second ones. */
function interleave<T>(lines: readonly T[][]): T[] {
  const [first = []] = lines
  return first.flatMap((_, index) => lines.map((cells) => cells[index]!))
}

function withRegion<T extends Pick<Line, 'region'>>(record: T) {
  const name = record.region!
  return { ...record, region_id: idOfName(name), region_name_id: name }
}

/** A game mode of the same name is another one in another game. */
function withGameMode<T extends Pick<Line, 'game_id' | 'game_mode'>>(record: T) {
  const name = record.game_mode!
  return { ...record, game_mode_id: idOfName(name, record.game_id!), game_mode_name_id: name }
}

function withDuration<T extends Pick<Sums, 'played_ms' | 'played_count'>>(record: T) {
  const { played_ms, played_count } = record
  return played_count === 0 ? [] : [{ ...record, duration: played_ms / played_count }]
}

/** In all buckets that have begun. */
function totalsOf(numbers: Numbers, grouping: Grouping) {
  return linesOf(numbers, grouping).map(({ cells, ...line }) => ({
    ...line,
    played_ms: cells.reduce((sum, cell) => sum + cell.played_ms, 0),
    played_count: cells.reduce((sum, cell) => sum + cell.played_count, 0),
  }))
}

/** One line where nothing is told apart, with or without rows. */
function linesOf({ rows, starts }: Numbers, grouping: Grouping): Line[] {
  const by_line = Map.groupBy(
    rows.filter((row) => groupingOf(row) === grouping),
    ({ region, game_id, game_mode }) => `${region} ${game_id} ${game_mode}`,
  )
  if (grouping === 'all' && by_line.size === 0) by_line.set('', [])
  const lines = [...by_line.values()].map((of_line) => {
    const { region = null, game_id = null, game_mode = null } = of_line[0] ?? {}
    return { region, game_id, game_mode, cells: cellsOf(of_line, starts) }
  })
  return largest(
    lines.filter(({ cells }) => grouping === 'all' || cells.some(isSomething)),
    ({ cells }) => cells.reduce((sum, { lobby_count }) => sum + lobby_count, 0),
    ({ region, game_id, game_mode }) => `${region} ${game_mode} ${game_id}`,
  )
}

function groupingOf({ region, game_mode }: BucketRow): Grouping {
  if (region !== null) return 'region'
  return game_mode === null ? 'all' : 'game_mode'
}

function cellsOf(rows: readonly BucketRow[], starts: readonly number[]): Cell[] {
  const row_of = new Map(rows.map((row) => [row.bucket, row]))
  const gauges = Object.fromEntries(GAUGES.map((gauge) => [gauge, row_of.get(-1)?.[`${gauge}_change`] ?? 0])) as Gauges
  return starts.map((ts, bucket) => {
    const row = row_of.get(bucket)
    for (const gauge of GAUGES) gauges[gauge] += row?.[`${gauge}_change`] ?? 0
    const sums = Object.fromEntries(SUM_NAMES.map((name) => [name, row?.[name] ?? 0])) as Sums
    return { ts, ...gauges, ...sums }
  })
}

function isSomething({ ts: _, ...cell }: Cell): boolean {
  return Object.values(cell).some((value) => value !== 0)
}

function exitsOf({ exits, starts }: Numbers) {
  const by_code = Map.groupBy(exits, ({ exit_code }) => exit_code)
  const codes = largest(
    [...by_code.keys()].toSorted((a, b) => a - b),
    (code) => by_code.get(code)!.reduce((sum, { lobby_count }) => sum + lobby_count, 0),
    (code) => String(code).padStart(11, '0'),
  )
  return interleave(
    codes.map((exit_code) => {
      const count_of = new Map(by_code.get(exit_code)!.map(({ bucket, lobby_count }) => [bucket, lobby_count]))
      return starts.map((ts, bucket) => ({ ts, exit_code, destroyed_lobby_count: count_of.get(bucket) ?? 0 }))
    }),
  )
}

/** LINES_MAX of them, in the order of their names. */
function largest<T>(items: readonly T[], sizeOf: (item: T) => number, nameOf: (item: T) => string): T[] {
  const byName = (a: T, b: T): number => (nameOf(a) < nameOf(b) ? -1 : 1)
  return items
    .toSorted((a, b) => sizeOf(b) - sizeOf(a) || byName(a, b))
    .slice(0, LINES_MAX)
    .toSorted(byName)
}
