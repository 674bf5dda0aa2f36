// Data sets of the platform's analytics as lines of charts. A data set is a table in columns; means have rows only for buckets
// with a value, so every line is put on the buckets of the number of players, which is there for each of them.
import type { AnalyticsDataSet, AnalyticsVariant } from '@musterhost/contract'

export type Period = { start_ms: number; end_ms: number }
export type SplitBy = '' | 'region' | 'game_mode'
export type ChartSeries = { label: string; values: (number | null)[]; is_before: boolean }

export type AnalyticsSubject = {
  id: string
  title: string
  lead: string
  unit: 'count' | 'rate' | 'duration'
  variant: AnalyticsVariant
  member: string
  /** Further lines of the chart, from the same data set. `label` is the name of the first one then. */
  more?: readonly { member: string; label: string }[]
  label?: string
  /** Data sets with the same member for each region or game mode. */
  split?: { region: AnalyticsVariant; game_mode: AnalyticsVariant }
  /** Only buckets with a value have one. */
  has_gaps?: boolean
  /** Shown only with a value: most games never have one. */
  is_rare?: boolean
}

export const SUBJECTS: readonly AnalyticsSubject[] = [
  {
    id: 'players',
    title: 'Players',
    lead: 'Players with a seat, reserved or connected.',
    unit: 'count',
    variant: 'player_count',
    member: 'player_count',
    split: { region: 'player_count_by_region', game_mode: 'player_count_by_game_mode' },
  },
  {
    id: 'lobbies',
    title: 'Lobbies',
    lead: 'Lobbies that were created and not yet stopped.',
    unit: 'count',
    variant: 'lobby_count',
    member: 'lobby_count',
    split: { region: 'lobby_count_by_region', game_mode: 'lobby_count_by_game_mode' },
  },
  {
    id: 'new_players',
    title: 'New players',
    lead: 'Seats given, per second.',
    unit: 'rate',
    variant: 'new_players_per_second',
    member: 'new_player_count',
  },
  {
    id: 'new_lobbies',
    title: 'New lobbies',
    lead: 'Lobbies created, per second.',
    unit: 'rate',
    variant: 'new_lobbies_per_second',
    member: 'new_lobby_count',
  },
  {
    id: 'failed',
    title: 'Failed lobbies',
    lead: 'Lobbies that never became ready, or whose server ended with an error.',
    unit: 'count',
    variant: 'failed_lobbies',
    member: 'destroyed_lobby_count',
  },
  {
    id: 'ready',
    title: 'Start time',
    lead: 'Mean time from the creation of a lobby until its server was ready.',
    unit: 'duration',
    variant: 'lobby_ready_time',
    member: 'ready_duration',
    has_gaps: true,
  },
  {
    id: 'finds',
    title: 'Finds',
    lead: 'Time within which half of the finds got their seat, 95 % and 99 %. A find that started a lobby includes its start.',
    unit: 'duration',
    variant: 'find_duration',
    member: 'duration_p50',
    label: 'Half',
    more: [
      { member: 'duration_p95', label: '95 %' },
      { member: 'duration_p99', label: '99 %' },
    ],
    has_gaps: true,
  },
  {
    id: 'match_waits',
    title: 'Waits for a match',
    lead: 'Time that half of the requests in game modes with rules waited at most until their match, 95 % and 99 %.',
    unit: 'duration',
    variant: 'match_wait',
    member: 'wait_p50',
    label: 'Half',
    more: [
      { member: 'wait_p95', label: '95 %' },
      { member: 'wait_p99', label: '99 %' },
    ],
    has_gaps: true,
    is_rare: true,
  },
  {
    id: 'played',
    title: 'Play time',
    lead: 'Mean time that the players who left were connected.',
    unit: 'duration',
    variant: 'avg_play_duration',
    member: 'duration',
    has_gaps: true,
  },
]

/** Lines of one chart when it is split. The largest are shown, and the page says so. */
const SPLIT_LINES_MAX = 5

type Columns = Record<string, readonly (number | string | boolean)[]>

export class DataSets {
  readonly times_ms: readonly number[]
  readonly #sets: Record<string, Columns>

  constructor(data_sets: readonly AnalyticsDataSet[]) {
    this.#sets = Object.assign({}, ...data_sets) as Record<string, Columns>
    this.times_ms = (this.#sets.player_count?.ts ?? []) as number[]
  }

  get width_ms(): number {
    const [first, second] = this.times_ms
    return first === undefined || second === undefined ? 1 : second - first
  }

  /** Whether the data set has a row. */
  has(variant: AnalyticsVariant): boolean {
    return (this.#sets[variant]?.ts ?? []).length > 0
  }

  /** One value for each bucket. */
  line(variant: AnalyticsVariant, member: string, is_count: boolean): (number | null)[] {
    const { ts = [], [member]: values = [] } = this.#sets[variant] ?? {}
    const line = this.#empty(is_count)
    for (const [row, at] of ts.entries()) this.#put(line, Number(at), Number(values[row]))
    return line
  }

  /** One line for each region or game mode, the largest first. */
  lines(variant: AnalyticsVariant, member: string, by: 'region' | 'game_mode'): Map<string, (number | null)[]> {
    const columns = this.#sets[variant] ?? {}
    const { ts = [], [member]: values = [], [`${by}_name_id`]: names = [] } = columns
    const lines = new Map<string, (number | null)[]>()
    for (const [row, at] of ts.entries()) {
      const name = String(names[row])
      let line = lines.get(name)
      if (line === undefined) {
        line = this.#empty(true)
        lines.set(name, line)
      }
      this.#put(line, Number(at), Number(values[row]))
    }
    return new Map([...lines].sort(([, a], [, b]) => sumOf(b) - sumOf(a)))
  }

  #empty(is_count: boolean): (number | null)[] {
    return this.times_ms.map(() => (is_count ? 0 : null))
  }

  #put(line: (number | null)[], at_ms: number, value: number): void {
    const bucket = Math.round((at_ms - (this.times_ms[0] ?? at_ms)) / this.width_ms)
    if (bucket >= 0 && bucket < line.length) line[bucket] = value
  }
}

function sumOf(line: readonly (number | null)[]): number {
  return line.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

/** The lines of a chart. `before`: the same for the previous period, in its own buckets. */
export function seriesOf(
  subject: AnalyticsSubject,
  now: DataSets,
  before: DataSets | null,
  by: SplitBy,
): { series: ChartSeries[]; left_out: number } {
  const { variant, member, split, has_gaps = false } = subject
  if (by !== '' && split !== undefined) {
    const lines = [...now.lines(split[by], member, by)]
    const series = lines.slice(0, SPLIT_LINES_MAX).map(([label, values]) => ({ label, values, is_before: false }))
    return { series, left_out: lines.length - series.length }
  }
  const shown = [{ member, label: subject.label ?? subject.title }, ...(subject.more ?? [])]
  const series: ChartSeries[] = shown.map((line) => ({
    label: line.label,
    values: now.line(variant, line.member, !has_gaps),
    is_before: false,
  }))
  if (before !== null) {
    const line = before.line(variant, member, !has_gaps)
    const values = now.times_ms.map((_, bucket) => line[bucket] ?? null)
    series.push({ label: 'Previous period', values, is_before: true })
  }
  return { series, left_out: 0 }
}

/** All data sets that the page shows, for one call. */
export function variantsOf(by: SplitBy): AnalyticsVariant[] {
  const variants = SUBJECTS.flatMap(({ variant, split }) =>
    by === '' || split === undefined ? [variant] : [variant, split[by]],
  )
  return [...new Set(variants)]
}
