// The numbers of a namespace over time: a range, the previous period beside it, and each chart also as a table and a CSV file.
// Marking a part of a chart with the pointer zooms in; Back zooms out.
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { getAnalytics, getGameNamespaceVersionHistoryList as getHistory } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, namespaceLink, versionLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import type { ChartMark } from '../../parts/chart.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { CheckField, SelectField } from '../../parts/fields.tsx'
import { type Figure, Figures } from '../../parts/figures.tsx'
import { Chart } from '../../parts/lazy-chart.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count, duration, instant } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { saveCsv } from '../../parts/save-csv.ts'
import { useNow } from '../../parts/time.tsx'
import { usePageActions } from '../../shell/page-actions.ts'
import { useUrlState } from '../../shell/url-state.ts'
import { versionName } from '../game/game.ts'
import { useNamespace } from '../namespace/namespace.ts'
import {
  type AnalyticsSubject,
  type ChartSeries,
  DataSets,
  type Period,
  type SplitBy,
  SUBJECTS,
  seriesOf,
  variantsOf,
} from './analytics-series.ts'

const VIEW = ['range', 'from', 'to', 'by', 'compare'] as const
const HOUR_MS = 3_600_000
const RANGES = [
  { value: '1h', text: 'Last hour', ms: HOUR_MS },
  { value: '6h', text: 'Last 6 hours', ms: 6 * HOUR_MS },
  { value: '24h', text: 'Last 24 hours', ms: 24 * HOUR_MS },
  { value: '7d', text: 'Last 7 days', ms: 7 * 24 * HOUR_MS },
  { value: '30d', text: 'Last 30 days', ms: 30 * 24 * HOUR_MS },
  { value: '1y', text: 'Last year', ms: 365 * 24 * HOUR_MS },
] as const
const RANGE_DEFAULT = RANGES[0]
const SPLITS = [
  { value: '', text: 'Nothing' },
  { value: 'region', text: 'Region' },
  { value: 'game_mode', text: 'Game mode' },
]
/** A range that ends now moves on in these steps. */
const STEP_MS = 10_000
/** A shorter part cannot be zoomed into. */
const PERIOD_MS_MIN = 10_000
/** Deploys that are marked: the newest. */
const DEPLOYS_MAX = 20
const DEPLOYS_EVERY_MS = 10_000

export default function Analytics() {
  const { game, namespace, params } = useNamespace()
  const [state, change] = useUrlState(VIEW)
  const by: SplitBy = state.by === 'region' || state.by === 'game_mode' ? state.by : ''
  const period = usePeriod(state)
  const deploys = useDeploys(period)
  const marks = useMemo(() => deploys.map(({ at_ms, text }): ChartMark => ({ at_ms, text })), [deploys])
  useChoiceActions(state, change)
  return (
    <Page
      title="Analytics"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      lead="Mark a part of a chart with the pointer to zoom in. With a chart focused, the arrow keys show its values. Times are those of this browser."
    >
      <Choices state={state} by={by} onChange={change} />
      <p className="numbers text-soft">
        {instant(period.start_ms)} to {instant(period.end_ms)}
      </p>
      <DeployLine deploys={deploys} />
      <Charts
        ids={params}
        period={period}
        by={by}
        marks={marks}
        is_compared={state.compare === 'yes'}
        onRange={(from_ms, to_ms) => change({ from: String(Math.floor(from_ms)), to: String(Math.ceil(to_ms)) })}
      />
    </Page>
  )
}

type View = Record<(typeof VIEW)[number], string>
type ChangeView = (change: Partial<View>) => void

const ZOOMED_OUT = { from: '', to: '' }

/** The choices as commands of the palette. */
function useChoiceActions(state: View, change: ChangeView): void {
  usePageActions([
    ...RANGES.map(({ value, text }) => ({
      id: `range ${value}`,
      title: `Show the ${text.toLowerCase()}`,
      run: () => change({ range: value, from: '', to: '' }),
    })),
    ...SPLITS.map(({ value, text }) => ({
      id: `split ${value}`,
      title: value === '' ? 'Split the charts by nothing' : `Split the charts by ${text.toLowerCase()}`,
      run: () => change({ by: value }),
    })),
    {
      id: 'compare',
      title: state.compare === 'yes' ? 'Hide the previous period' : 'Compare with the previous period',
      run: () => change({ compare: state.compare === 'yes' ? '' : 'yes' }),
    },
    ...(state.from !== '' ? [{ id: 'zoom-out', title: 'Zoom out', run: () => change(ZOOMED_OUT) }] : []),
  ])
}

function Choices({ state, by, onChange }: { state: View; by: SplitBy; onChange: ChangeView }) {
  const is_zoomed = state.from !== ''
  return (
    <div className="flex flex-wrap items-end gap-3">
      <div className="w-44">
        <SelectField
          label="Range"
          value={is_zoomed ? 'zoom' : state.range || RANGE_DEFAULT.value}
          options={[...RANGES, ...(is_zoomed ? [{ value: 'zoom', text: 'Marked part' }] : [])]}
          onChange={(range) => onChange({ range, from: '', to: '' })}
        />
      </div>
      <div className="w-44">
        <SelectField label="Split by" value={by} options={SPLITS} onChange={(next) => onChange({ by: next })} />
      </div>
      <div className="pb-1.5">
        <CheckField
          label="Compare with the previous period"
          checked={state.compare === 'yes'}
          onChange={(is_on) => onChange({ compare: is_on ? 'yes' : '' })}
        />
      </div>
      {is_zoomed ? <Button onClick={() => onChange(ZOOMED_OUT)}>Zoom out</Button> : null}
    </div>
  )
}

function DeployLine({ deploys }: { deploys: readonly MarkedDeploy[] }) {
  const { game } = useNamespace()
  if (deploys.length === 0) return null
  return (
    <p className="flex flex-wrap gap-x-4 text-soft">
      Deploys in this time:
      {deploys.map(({ deploy_id, version_id, at_ms, text }) => (
        <span key={deploy_id} className="numbers wrap-anywhere">
          <Link to={versionLink(game.game_id, version_id)}>{text}</Link> {instant(at_ms)}
        </span>
      ))}
    </p>
  )
}

type MarkedDeploy = ChartMark & { deploy_id: string; version_id: string }

/** The newest deploys of the period, oldest first. The charts mark them. */
function useDeploys({ start_ms, end_ms }: Period): readonly MarkedDeploy[] {
  const { game, params } = useNamespace()
  const read = useCall(getHistory, { params, query: { limit: DEPLOYS_MAX } }, { every_ms: DEPLOYS_EVERY_MS })
  const versions = read.data?.versions
  return useMemo(
    () =>
      (versions ?? [])
        .map(({ deploy_id, version_id, deploy_ts }) => ({
          ...{ deploy_id, version_id },
          at_ms: Date.parse(deploy_ts),
          text: versionName(game, version_id),
        }))
        .filter(({ at_ms }) => at_ms >= start_ms && at_ms <= end_ms)
        .toReversed(),
    [versions, game, start_ms, end_ms],
  )
}

function usePeriod(state: { range: string; from: string; to: string }): Period {
  const now_ms = useNow()
  const { from, to, range } = state
  const [start_ms, end_ms] = [Number(from), Number(to)]
  if (from !== '' && Number.isFinite(start_ms) && Number.isFinite(end_ms) && end_ms > start_ms) {
    return { start_ms, end_ms: Math.max(end_ms, start_ms + PERIOD_MS_MIN) }
  }
  const { ms } = RANGES.find(({ value }) => value === range) ?? RANGE_DEFAULT
  const end = Math.ceil(now_ms / STEP_MS) * STEP_MS
  return { start_ms: end - ms, end_ms: end }
}

type ChartsProps = {
  ids: { game_id: string; namespace_id: string }
  period: Period
  by: SplitBy
  marks: readonly ChartMark[]
  is_compared: boolean
  onRange: (from_ms: number, to_ms: number) => void
}

function Charts({ ids, period, by, marks, is_compared, onRange }: ChartsProps) {
  const length_ms = period.end_ms - period.start_ms
  const query = queryOf(ids, period, by)
  const now = useCall(getAnalytics, { query })
  const earlier = { start_ms: period.start_ms - length_ms, end_ms: period.start_ms }
  const before = useCall(getAnalytics, { query: queryOf(ids, earlier, by) }, { enabled: is_compared })
  const sets = useMemo(() => (now.data === undefined ? null : new DataSets(now.data.data_sets)), [now.data])
  const sets_before = useMemo(
    () => (!is_compared || before.data === undefined ? null : new DataSets(before.data.data_sets)),
    [before.data, is_compared],
  )
  if (sets === null) return <Pending read={now} what="Loading the numbers" />
  return (
    <>
      {now.error === null ? null : <Pending read={now} />}
      {before.error === null ? null : <Pending read={before} />}
      <Figures label="Main figures" figures={figuresOf(period, sets, sets_before)} />
      <div className="grid min-w-0 grid-cols-1 gap-5 lg:grid-cols-2">
        {SUBJECTS.filter(({ variant, is_rare }) => is_rare !== true || sets.has(variant)).map((subject) => (
          <OneChart
            key={subject.id}
            subject={subject}
            sets={sets}
            before={sets_before}
            by={by}
            marks={marks}
            onRange={onRange}
          />
        ))}
      </div>
      <div>
        <CopyAs operation={getAnalytics} input={{ query }} />
      </div>
    </>
  )
}

/** The last value of what is there, and the sum of what happened. With a previous period, its value is below. */
function figuresOf({ end_ms }: Period, sets: DataSets, before: DataSets | null): Figure[] {
  const when = end_ms > Date.now() - STEP_MS ? 'now' : 'at the end'
  const last = (of: DataSets, name: 'player_count' | 'lobby_count'): number => of.line(name, name, true).at(-1) ?? 0
  const finds = (of: DataSets): number =>
    of.line('find_duration', 'find_count', true).reduce<number>((sum, one) => sum + (one ?? 0), 0)
  const figure = (name: string, numberOf: (of: DataSets) => number): Figure => ({
    name,
    value: count(numberOf(sets)),
    ...(before === null ? {} : { note: `before: ${count(numberOf(before))}` }),
  })
  return [
    figure(`Players ${when}`, (of) => last(of, 'player_count')),
    figure(`Lobbies ${when}`, (of) => last(of, 'lobby_count')),
    figure('Finds in this time', finds),
  ]
}

function queryOf({ game_id, namespace_id }: ChartsProps['ids'], { start_ms, end_ms }: Period, by: SplitBy) {
  return {
    query_start: new Date(start_ms).toISOString(),
    query_end: new Date(end_ms).toISOString(),
    game_ids: [game_id],
    namespace_ids: [namespace_id],
    variants: variantsOf(by),
  }
}

type OneChartProps = {
  subject: AnalyticsSubject
  sets: DataSets
  before: DataSets | null
  by: SplitBy
  marks: readonly ChartMark[]
  onRange: ChartsProps['onRange']
}

function OneChart({ subject, sets, before, by, marks, onRange }: OneChartProps) {
  const [has_table, setTable] = useState(false)
  const { series, left_out } = useMemo(() => seriesOf(subject, sets, before, by), [subject, sets, before, by])
  const lines = useMemo(
    () =>
      series.map(({ label, values, is_before }) => ({
        label,
        values,
        is_dashed: is_before,
        has_gaps: subject.has_gaps === true,
      })),
    [series, subject],
  )
  const format = FORMATS[subject.unit]
  return (
    <Section
      title={subject.title}
      lead={subject.lead}
      actions={
        <>
          <Button kind="quiet" aria-expanded={has_table} onClick={() => setTable(!has_table)}>
            {has_table ? 'Hide table' : 'Table'}
          </Button>
          <Button
            kind="quiet"
            aria-label={`CSV: ${subject.title}`}
            onClick={() => saveSeries(subject, sets.times_ms, series)}
          >
            CSV
          </Button>
        </>
      }
    >
      <div className="p-2">
        <Chart
          label={subject.title}
          times_ms={sets.times_ms}
          lines={lines}
          marks={marks}
          format={format}
          onRange={onRange}
          {...(subject.unit === 'count' ? { step_min: 1 } : {})}
        />
      </div>
      {left_out > 0 ? (
        <p className="border-t border-line px-3 py-2 text-xs text-soft">
          The lines with the most are shown; {count(left_out)} more are left out.
        </p>
      ) : null}
      {has_table ? <ValueTable subject={subject} times_ms={sets.times_ms} series={series} format={format} /> : null}
    </Section>
  )
}

const FORMATS: Record<AnalyticsSubject['unit'], (value: number) => string> = {
  count: (value) => count(Math.round(value * 100) / 100),
  rate: (value) => `${Number(value.toPrecision(3))} / s`,
  duration,
}

type Row = { at_ms: number; values: (number | null)[] }

function ValueTable({
  subject,
  times_ms,
  series,
  format,
}: {
  subject: AnalyticsSubject
  times_ms: readonly number[]
  series: readonly ChartSeries[]
  format: (value: number) => string
}) {
  const rows = times_ms.map(
    (at_ms, bucket): Row => ({ at_ms, values: series.map(({ values }) => values[bucket] ?? null) }),
  )
  const columns: Column<Row>[] = [
    { id: 'time', title: 'From', width: 13, sortBy: ({ at_ms }) => at_ms, cell: ({ at_ms }) => instant(at_ms) },
    ...series.map(
      ({ label }, at): Column<Row> => ({
        id: `${at}`,
        title: label,
        is_number: true,
        sortBy: ({ values }) => values[at] ?? undefined,
        cell: ({ values }) => {
          const value = values[at]
          return value === null || value === undefined ? '–' : format(value)
        },
      }),
    ),
  ]
  return (
    <div className="max-h-96 overflow-y-auto border-t border-line">
      <DataTable
        label={`Values: ${subject.title}`}
        rows={rows.toReversed()}
        rowId={({ at_ms }) => String(at_ms)}
        columns={columns}
        empty="No values."
      />
    </div>
  )
}

/** Whole numbers and names of columns as in the API, so that the file is for programs. */
function saveSeries({ id }: AnalyticsSubject, times_ms: readonly number[], series: readonly ChartSeries[]): void {
  saveCsv(`${id}.csv`, [
    ['time', ...series.map(({ label }) => label)],
    ...times_ms.map((at_ms, bucket) => [
      new Date(at_ms).toISOString(),
      ...series.map(({ values }) => String(values[bucket] ?? '')),
    ]),
  ])
}
