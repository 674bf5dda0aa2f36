// What the lobbies of a group used in a month, by game and region.
import { useParams } from '@tanstack/react-router'
import { getGameById, getUsage } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { Notice, Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { mayCall, useGames, useRole } from '../../shell/person.tsx'
import { useUrlState } from '../../shell/url-state.ts'

const HOUR_MS = 3_600_000
/** Months that can be chosen. */
const MONTHS_MAX = 24
const MICROS = 1_000_000
const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })

type Line = { id: string; game: string; region: string; core_ms: number; cost_micros: number | undefined }

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
        <Usage group_id={group_id} />
      ) : (
        <Notice tone="warn">You are no member of this group.</Notice>
      )}
    </Page>
  )
}

function Usage({ group_id }: { group_id: string }) {
  const [state, change] = useUrlState(['month'])
  const months = monthsBefore(new Date())
  const month = months.find(({ value }) => value === state.month) ?? months[0]!
  const query = {
    query_start_ts: month.start.toISOString(),
    ...(month === months[0] ? {} : { query_end_ts: month.end.toISOString() }),
  }
  const input = { params: { group_id }, query }
  const read = useCall(getUsage, input)
  const names = useNames(group_id)
  return (
    <>
      <div className="w-56">
        <SelectField
          label="Month"
          value={month.value}
          options={months.map(({ value, start }) => ({ value, text: MONTH.format(start) }))}
          onChange={(value) => change({ month: value === months[0]!.value ? '' : value })}
        />
      </div>
      {read.data === undefined ? (
        <Pending read={read} what="Loading the usage" />
      ) : (
        <Lines
          lines={read.data.games.flatMap(({ game_id, regions }) =>
            regions.map(
              ({ region_id, uptime, cost_micros }): Line => ({
                id: `${game_id} ${region_id}`,
                game: names.gameName(game_id),
                region: names.regionName(region_id),
                core_ms: uptime,
                cost_micros,
              }),
            ),
          )}
          currency={read.data.currency}
          is_cut={read.data.is_cut}
        />
      )}
      <div>
        <CopyAs operation={getUsage} input={input} muster={`usage --group ${group_id}`} />
      </div>
    </>
  )
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

function Lines({ lines, currency, is_cut }: { lines: Line[]; currency: string | undefined; is_cut: boolean }) {
  const sum_ms = lines.reduce((sum, { core_ms }) => sum + core_ms, 0)
  const priced = lines.filter(({ cost_micros }) => cost_micros !== undefined)
  const sum_micros = priced.reduce((sum, { cost_micros = 0 }) => sum + cost_micros, 0)
  return (
    <>
      {is_cut ? (
        <Notice tone="warn">
          The month begins before the oldest records of lobbies. The real usage may be higher.
        </Notice>
      ) : null}
      <Section title="In all">
        <Facts
          facts={[
            ['Core time', coreTime(sum_ms)],
            ['Cost', currency === undefined ? 'No region has a price.' : money(sum_micros, currency)],
            ...(currency !== undefined && priced.length < lines.length
              ? [['Without a price', `${lines.length - priced.length} of ${lines.length} lines`] as const]
              : []),
          ]}
        />
      </Section>
      <Section title="By game and region">
        <DataTable
          label="Usage"
          rows={lines}
          rowId={({ id }) => id}
          empty="No lobby ran in this month."
          initial_sort={{ column: 'time', is_down: true }}
          columns={[
            { id: 'game', title: 'Game', sortBy: ({ game }) => game, cell: ({ game }) => game },
            { id: 'region', title: 'Region', sortBy: ({ region }) => region, cell: ({ region }) => region },
            {
              id: 'time',
              title: 'Core time',
              is_number: true,
              sortBy: ({ core_ms }) => core_ms,
              cell: ({ core_ms }) => coreTime(core_ms),
            },
            {
              id: 'cost',
              title: 'Cost',
              is_number: true,
              sortBy: ({ cost_micros }) => cost_micros,
              cell: ({ cost_micros }) =>
                cost_micros === undefined || currency === undefined ? '–' : money(cost_micros, currency),
            },
          ]}
        />
      </Section>
    </>
  )
}

type Month = { value: string; start: Date; end: Date }

/** The present month and those before it, newest first. */
function monthsBefore(now: Date): Month[] {
  return Array.from({ length: MONTHS_MAX }, (_, back) => {
    const start = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back))
    const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back + 1))
    return { value: start.toISOString().slice(0, 7), start, end }
  })
}

function coreTime(ms: number): string {
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(ms / HOUR_MS)} core hours`
}

function money(micros: number, currency: string): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(micros / MICROS)
}
