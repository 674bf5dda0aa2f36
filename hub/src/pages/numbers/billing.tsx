// What the lobbies of a group used in a range of months, by game, region and month.
import { useParams } from '@tanstack/react-router'
import { getGameById, getUsage } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { saveCsv } from '../../parts/save-csv.ts'
import { usePageActions } from '../../shell/page-actions.ts'
import { mayCall, useGames, useRole } from '../../shell/person.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import {
  type MonthlyUsage,
  monthsBefore,
  monthsBetween,
  type Split,
  sumBy,
  useUsage,
  windowOf,
} from './billing-months.ts'

const HOUR_MS = 3_600_000
const MICROS = 1_000_000
const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
const SHORT_MONTH = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', timeZone: 'UTC' })
const SPLITS: readonly { value: string; text: string; splits: readonly Split[] }[] = [
  { value: '', text: 'Game, region and month', splits: ['month', 'game', 'region'] },
  { value: 'month', text: 'Month', splits: ['month'] },
  { value: 'game', text: 'Game', splits: ['game'] },
  { value: 'region', text: 'Region', splits: ['region'] },
]
/** Months of the range that a click on its button shows. */
const RANGES = [1, 3, 12] as const

export default function Billing() {
  const { group_id = '' } = useParams({ strict: false }) as { group_id?: string }
  const role = useRole(group_id)
  return (
    <Page
      title="Usage and cost"
      crumbs={[{ text: 'Home', to: HOME }]}
      lead="Core time: the running time of each server times the cores of its tier. Months are in UTC."
    >
      {mayCall(role, getUsage) ? (
        <UsageOfMonths group_id={group_id} />
      ) : (
        <Notice tone="warn">You are no member of this group.</Notice>
      )}
    </Page>
  )
}

function UsageOfMonths({ group_id }: { group_id: string }) {
  const [state, change] = useUrlState(['from', 'to', 'by'])
  const now = new Date()
  const months = monthsBefore(now)
  const monthOf = (value: string) => months.find((month) => month.value === value) ?? months[0]!
  const [from, to] = [monthOf(state.from), monthOf(state.to)]
  const range = monthsBetween(months, from.value, to.value)
  const split = SPLITS.find(({ value }) => value === state.by) ?? SPLITS[0]!
  const usage = useUsage(group_id, range)
  const asked = windowOf(range, now)
  const until = asked.query_end_ts === undefined ? '' : ` --until ${asked.query_end_ts}`
  const options = months.map(({ value, start }) => ({ value, text: MONTH.format(start) }))
  const showLast = (length: number): void => change({ from: length === 1 ? '' : months[length - 1]!.value, to: '' })
  usePageActions(
    RANGES.map((length) => ({ id: `months ${length}`, title: titleOf(length), run: () => showLast(length) })),
  )
  return (
    <>
      <div className="flex flex-wrap items-end gap-3">
        <div className="w-44">
          <SelectField
            label="From"
            value={range[0]!.value}
            options={options}
            onChange={(value) => change({ from: value, ...(value > to.value ? { to: value } : {}) })}
          />
        </div>
        <div className="w-44">
          <SelectField
            label="To"
            value={range.at(-1)!.value}
            options={options}
            onChange={(value) =>
              change({ to: value, ...(value < from.value ? { from: value } : { from: from.value }) })
            }
          />
        </div>
        <div className="w-56">
          <SelectField label="Sum by" value={split.value} options={SPLITS} onChange={(by) => change({ by })} />
        </div>
        <div className="sm:ml-auto">
          <CopyAs
            operation={getUsage}
            input={{ params: { group_id }, query: asked }}
            muster={`usage --group ${group_id} --since ${asked.query_start_ts}${until}`}
          />
        </div>
      </div>
      {usage.unread === undefined ? (
        <Lines usage={usage} group_id={group_id} split={split} file_name={fileName(range)} />
      ) : (
        <Pending read={usage.unread} what={`Loading the usage: ${usage.read_count} of ${range.length} months`} />
      )}
    </>
  )
}

function titleOf(length: number): string {
  return length === 1 ? 'Show the usage of this month' : `Show the usage of the last ${length} months`
}

function fileName(range: readonly { value: string }[]): string {
  const [first, last] = [range[0]!.value, range.at(-1)!.value]
  return first === last ? `usage-${first}.csv` : `usage-${first}-to-${last}.csv`
}

/** Every game lists the regions of the platform, so one game of the group names them all. */
function useNames(group_id: string) {
  const { data } = useGames()
  const game_id = data?.games.find((game) => game.developer.group_id === group_id)?.game_id ?? ''
  const { data: one } = useCall(getGameById, { params: { game_id } }, { enabled: game_id !== '' })
  const regions = one?.game.available_regions ?? []
  return {
    regionName: (region_id: string): string =>
      regions.find((region) => region.region_id === region_id)?.region_display_name ?? region_id,
    gameName: (game_id: string): string =>
      data?.games.find((game) => game.game_id === game_id)?.display_name ?? `Deleted game ${game_id.slice(-8)}`,
  }
}

type Names = ReturnType<typeof useNames>

type LinesProps = {
  usage: ReturnType<typeof useUsage>
  group_id: string
  split: (typeof SPLITS)[number]
  file_name: string
}

function Lines({ usage, group_id, split, file_name }: LinesProps) {
  const { lines, currency, is_cut } = usage
  const names = useNames(group_id)
  const rows = sumBy(lines, split.splits)
  const sum_ms = lines.reduce((sum, { core_ms }) => sum + core_ms, 0)
  const priced = lines.filter(({ cost_micros }) => cost_micros !== undefined)
  const sum_micros = priced.reduce((sum, { cost_micros = 0 }) => sum + cost_micros, 0)
  const columns = columnsOf(names, currency).filter(({ id }) => isShown(id, split.splits))
  return (
    <>
      {is_cut ? (
        <Notice tone="warn">
          The range begins before the oldest records of lobbies. The real usage may be higher.
        </Notice>
      ) : null}
      <Section title="Total">
        <Facts
          facts={[
            ['Core time', `${coreHours(sum_ms)} core hours`],
            ['Cost', currency === undefined ? 'No region has a price.' : money(sum_micros, currency)],
            ...(currency !== undefined && priced.length < lines.length
              ? [['Without a price', `${lines.length - priced.length} of ${lines.length} lines`] as const]
              : []),
          ]}
        />
      </Section>
      <Section
        title={`By ${split.text.toLowerCase()}`}
        actions={
          <Button
            kind="quiet"
            disabled={rows.length === 0}
            onClick={() => saveUsage(file_name, rows, split.splits, names, currency)}
          >
            CSV
          </Button>
        }
      >
        <DataTable
          key={split.value}
          label="Usage"
          rows={rows}
          rowId={({ month, game_id, region_id }) => `${month} ${game_id} ${region_id}`}
          empty="No lobby ran in this time."
          initial_sort={{ column: split.splits[0] === 'month' ? 'month' : 'time', is_down: true }}
          columns={columns}
        />
      </Section>
    </>
  )
}

function isShown(column: string, splits: readonly Split[]): boolean {
  return column === 'time' || column === 'cost' || splits.includes(column as Split)
}

function columnsOf({ gameName, regionName }: Names, currency: string | undefined): Column<MonthlyUsage>[] {
  return [
    {
      id: 'month',
      title: 'Month',
      sortBy: ({ month }) => month,
      cell: ({ month }) => SHORT_MONTH.format(new Date(`${month}-01T00:00:00Z`)),
    },
    { id: 'game', title: 'Game', sortBy: ({ game_id }) => gameName(game_id), cell: ({ game_id }) => gameName(game_id) },
    {
      id: 'region',
      title: 'Region',
      sortBy: ({ region_id }) => regionName(region_id),
      cell: ({ region_id }) => regionName(region_id),
    },
    {
      id: 'time',
      title: 'Core hours',
      is_number: true,
      sortBy: ({ core_ms }) => core_ms,
      cell: ({ core_ms }) => coreHours(core_ms),
    },
    {
      id: 'cost',
      title: 'Cost',
      is_number: true,
      sortBy: ({ cost_micros }) => cost_micros,
      cell: ({ cost_micros }) =>
        cost_micros === undefined || currency === undefined ? '–' : money(cost_micros, currency),
    },
  ]
}

/** Ids and whole numbers as in the API, so that the file is for programs; names beside them. */
function saveUsage(
  file_name: string,
  rows: readonly MonthlyUsage[],
  splits: readonly Split[],
  { gameName, regionName }: Names,
  currency = '',
): void {
  const columns: [is_shown: boolean, title: string, textOf: (row: MonthlyUsage) => string][] = [
    [splits.includes('month'), 'month', ({ month }) => month],
    [splits.includes('game'), 'game_id', ({ game_id }) => game_id],
    [splits.includes('game'), 'game', ({ game_id }) => gameName(game_id)],
    [splits.includes('region'), 'region_id', ({ region_id }) => region_id],
    [splits.includes('region'), 'region', ({ region_id }) => regionName(region_id)],
    [true, 'core_time_ms', ({ core_ms }) => String(core_ms)],
    [true, 'cost_micros', ({ cost_micros }) => String(cost_micros ?? '')],
    [true, 'currency', () => currency],
  ]
  const shown = columns.filter(([is_shown]) => is_shown)
  saveCsv(file_name, [shown.map(([, title]) => title), ...rows.map((row) => shown.map(([, , textOf]) => textOf(row)))])
}

function coreHours(ms: number): string {
  return new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(ms / HOUR_MS)
}

function money(micros: number, currency: string): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(micros / MICROS)
}
