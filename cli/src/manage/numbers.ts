// Analytics of a namespace and usage of a group.
import {
  ANALYTICS_VARIANTS,
  type AnalyticsVariant,
  getAnalytics,
  getGameById,
  getGames,
  getUsage,
} from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import type { Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { durationText } from '../times.ts'
import { openNamespace } from './games.ts'
import { type GroupOptions, openGroup } from './groups.ts'

type Window = { since: number; until?: number }

const HOUR_MS = 60 * 60_000
const MICROS = 1_000_000

export async function showAnalytics(
  terminal: Terminal,
  variants: readonly string[],
  { since, until, ...options }: GlobalOptions & Window,
): Promise<void> {
  for (const name of variants) requireVariant(name)
  const { session, params, where } = await openNamespace(terminal, options)
  const query = {
    query_start: new Date(since).toISOString(),
    query_end: new Date(until ?? terminal.now()).toISOString(),
    game_ids: [params.game_id],
    namespace_ids: [params.namespace_id],
    variants: variants as AnalyticsVariant[],
  }
  terminal.note(`Analytics of ${where} from ${query.query_start} to ${query.query_end}`)
  const response = await session.client.call(getAnalytics, { query })
  if (terminal.is_json) return terminal.json(response)
  for (const set of response.data_sets) {
    for (const [name, columns] of Object.entries(set)) {
      terminal.print(terminal.paint('bold', name))
      printColumns(terminal, columns as Record<string, unknown>)
    }
  }
  if (response.is_cut) terminal.note('Data sets by region, game mode or exit code have more lines.')
}

export async function showUsage(terminal: Terminal, options: GroupOptions & Partial<Window>): Promise<void> {
  const { client, group } = await openGroup(terminal, options)
  const query = {
    ...(options.since === undefined ? {} : { query_start_ts: new Date(options.since).toISOString() }),
    ...(options.until === undefined ? {} : { query_end_ts: new Date(options.until).toISOString() }),
  }
  const usage = await client.call(getUsage, { params: { group_id: group.group_id }, query })
  if (terminal.is_json) return terminal.json(usage)
  const { games } = await client.call(getGames, {})
  const regions_known = await regionsOf(client, games[0]?.game_id)
  const rows = usage.games.flatMap(({ game_id, regions }) =>
    regions.map((region) => ({ ...region, game: games.find((game) => game.game_id === game_id)?.name_id ?? game_id })),
  )
  printTable(
    terminal,
    rows,
    [
      { title: 'GAME', text: ({ game }) => game },
      { title: 'REGION', text: ({ region_id }) => regions_known.get(region_id) ?? region_id },
      { title: 'CORE HOURS', text: ({ uptime }) => (uptime / HOUR_MS).toFixed(2), align: 'right' },
      {
        title: 'COST',
        text: ({ cost_micros }) =>
          cost_micros === undefined ? '-' : `${(cost_micros / MICROS).toFixed(2)} ${usage.currency ?? ''}`.trim(),
        align: 'right',
      },
    ],
    'No lobby of the group ran in this time.',
  )
  if (usage.is_cut) terminal.note('The window begins before the oldest records: the real usage may be higher.')
}

/** Names of regions by id. All games have the same regions. */
async function regionsOf(client: Session['client'], game_id: string | undefined): Promise<Map<string, string>> {
  if (game_id === undefined) return new Map()
  const { game } = await client.call(getGameById, { params: { game_id } })
  return new Map(game.available_regions.map(({ region_id, region_name_id }) => [region_id, region_name_id]))
}

function requireVariant(name: string): void {
  if ((ANALYTICS_VARIANTS as string[]).includes(name)) return
  throw new Failure(`${name} is not a data set.${didYouMean(name, ANALYTICS_VARIANTS)}`, {
    exit_code: EXIT.usage,
    remedy: `Data sets: ${ANALYTICS_VARIANTS.join(', ')}`,
  })
}

/** A data set is a table in columns: arrays of the same length, or single numbers. */
function printColumns(terminal: Terminal, columns: Record<string, unknown>): void {
  const names = Object.keys(columns).filter((name) => name !== 'ts' && !name.endsWith('_id'))
  const lists = Object.fromEntries(
    Object.entries(columns).map(([name, value]) => [name, Array.isArray(value) ? (value as unknown[]) : [value]]),
  )
  const length = Math.max(0, ...Object.values(lists).map((list) => list.length))
  const labels = Object.keys(columns).filter((name) => name.endsWith('_name_id'))
  const shown = ['ts', ...labels, ...names].filter((name) => lists[name] !== undefined)
  printTable(
    terminal,
    Array.from({ length }, (_, row) => row),
    shown.map((name) => ({
      title: name === 'ts' ? 'TIME' : name.toUpperCase(),
      text: (row) => cellText(name, lists[name]?.[row]),
      ...(name === 'ts' || labels.includes(name) ? {} : { align: 'right' as const }),
    })),
    'No data in this time.',
  )
}

function cellText(name: string, value: unknown): string {
  if (name === 'ts') return new Date(Number(value)).toISOString()
  if (typeof value === 'number' && name.endsWith('duration')) return durationText(value)
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toFixed(3)
  return String(value ?? '')
}
