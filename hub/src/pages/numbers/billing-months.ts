// The usage of a group in a range of months: one read per month, then sums by what the person chose.
import type { ResponseOf, getUsage as UsageOperation } from '@musterhost/contract'
import { type UseQueryOptions, type UseQueryResult, useQueries } from '@tanstack/react-query'
import { call } from '../../api/call.ts'
import type { CallError } from '../../api/call-error.ts'
import { getUsage } from '../../api/operations.gen.ts'

/** Months that can be chosen, and reads of one range. */
const MONTHS_MAX = 24

export type Month = { value: string; start: Date; end: Date }

export type MonthlyUsage = {
  month: string
  game_id: string
  region_id: string
  core_ms: number
  /** Undefined when no part of the usage has a price. */
  cost_micros: number | undefined
}

type Response = ResponseOf<typeof UsageOperation>

export type Split = 'game' | 'region' | 'month'

/** The present month and those before it, newest first. */
export function monthsBefore(now: Date): Month[] {
  return Array.from({ length: MONTHS_MAX }, (_, back) => {
    const start = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back))
    const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back + 1))
    return { value: start.toISOString().slice(0, 7), start, end }
  })
}

/** The months from one to another, oldest first. The two may come in either order. */
export function monthsBetween(months: readonly Month[], from: string, to: string): Month[] {
  const [first, last] = [from, to].sort()
  return months.filter(({ value }) => value >= first! && value <= last!).toReversed()
}

/** The window of some months. The API ends it now when the last month has not ended. */
export function windowOf(months: readonly Month[], now: Date) {
  const { start } = months[0]!
  const { end } = months.at(-1)!
  return { query_start_ts: start.toISOString(), ...(end > now ? {} : { query_end_ts: end.toISOString() }) }
}

export function useUsage(group_id: string, months: readonly Month[]) {
  const now = new Date()
  const reads: UseQueryResult<Response, CallError>[] = useQueries({
    queries: months.map((month): UseQueryOptions<Response, CallError> => {
      const input = { params: { group_id }, query: windowOf([month], now) }
      return {
        queryKey: [getUsage.id, input],
        queryFn: ({ signal }) => call(getUsage, input, signal),
      }
    }),
  })
  const responses = reads.flatMap(({ data }) => (data === undefined ? [] : [data]))
  const lines = reads.flatMap(({ data }, at) =>
    (data?.games ?? []).flatMap(({ game_id, regions }) =>
      regions.map(
        ({ region_id, uptime, cost_micros }): MonthlyUsage => ({
          month: months[at]!.value,
          game_id,
          region_id,
          core_ms: uptime,
          cost_micros,
        }),
      ),
    ),
  )
  return {
    lines,
    currency: responses.find(({ currency }) => currency !== undefined)?.currency,
    is_cut: responses.some(({ is_cut }) => is_cut),
    read_count: responses.length,
    /** The read to report: the first that failed, else the first that is under way. Undefined when all months are read. */
    unread:
      reads.find(({ data, error }) => data === undefined && error !== null) ??
      reads.find(({ data }) => data === undefined),
  }
}

/** Adds up the lines that agree in every member of `splits`. Other members of a sum are empty. */
export function sumBy(lines: readonly MonthlyUsage[], splits: readonly Split[]): MonthlyUsage[] {
  const sums = new Map<string, MonthlyUsage>()
  for (const line of lines) {
    const month = splits.includes('month') ? line.month : ''
    const game_id = splits.includes('game') ? line.game_id : ''
    const region_id = splits.includes('region') ? line.region_id : ''
    const key = `${month} ${game_id} ${region_id}`
    const sum = sums.get(key) ?? { month, game_id, region_id, core_ms: 0, cost_micros: undefined }
    sum.core_ms += line.core_ms
    if (line.cost_micros !== undefined) sum.cost_micros = (sum.cost_micros ?? 0) + line.cost_micros
    sums.set(key, sum)
  }
  return [...sums.values()]
}
