// Which lobbies there were: the newest of a namespace, and one of them; and the address of all of a time.
import {
  ApiError,
  type getNamespaceLobby,
  type LobbyMetrics,
  type LogsLobbySummary,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { exitCodeOf } from '../../database/exit-code.ts'
import type { ProtocolReportRow } from '../../database/schema.ts'
import { idOfName } from '../../ids.ts'
import { busyCores } from '../../lobby-logs/lobby-metrics.ts'
import { reportedProtocol } from '../../lobby-logs/reported-protocol.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { historyUrl, logUrl } from '../export-urls.ts'
import { cut } from '../lists.ts'
import { startPerf } from '../rays/rays.ts'
import { timestamp } from '../times.ts'
import type { QueryWindow } from './csv.ts'
import { exitReasonOf, hasFailed, LOBBY_COLUMNS, type LobbyRow } from './rows.ts'

/** Cores in use are rounded to a ten-thousandth. */
const CORE_PARTS = 10_000

const PAGE = 64
/** Lobbies of one response. A page includes all lobbies of its last moment, up to this. */
const LIST_MAX = 2_000

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function listNamespaceLobbies(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id }: { game_id: string; namespace_id: string },
  before_create_ts: string | undefined,
): Promise<{ lobbies: LogsLobbySummary[]; is_cut: boolean }> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const { rows: found } = await ctx.pool.query<LobbyRow>(
    `select ${LOBBY_COLUMNS} from (
        select * from lobbies where namespace_id = $1 and create_ts < $2
        order by create_ts desc fetch first ${PAGE} rows with ties
      ) as l left join lobby_runs r using (lobby_id)
      order by l.create_ts desc, l.lobby_id desc limit ${LIST_MAX + 1}`,
    [namespace_id, before_create_ts === undefined ? 'infinity' : new Date(before_create_ts)],
  )
  const { rows, is_cut } = cut(found, LIST_MAX)
  return { lobbies: rows.map(summaryOf), is_cut: is_cut || (await hasOlder(ctx, namespace_id, rows.at(-1))) }
}

async function hasOlder(ctx: Context, namespace_id: string, oldest: LobbyRow | undefined): Promise<boolean> {
  if (oldest === undefined) return false
  const { rows } = await ctx.pool.query('select from lobbies where namespace_id = $1 and create_ts < $2 limit 1', [
    namespace_id,
    oldest.create_ts,
  ])
  return rows.length > 0
}

type WholeRow = LobbyRow & {
  is_started: boolean
  memory_mb: number
  ray_id: string | null
  protocol_report: ProtocolReportRow | null
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or LOBBY_NOT_FOUND. */
export async function findNamespaceLobby(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id, lobby_id }: { game_id: string; namespace_id: string; lobby_id: string },
): Promise<ResponseOf<typeof getNamespaceLobby>> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const { rows } = await ctx.pool.query<WholeRow>(
    `select ${LOBBY_COLUMNS}, r.lobby_id is not null as is_started, l.memory_mb, l.ray_id, r.protocol_report
      from lobbies l left join lobby_runs r using (lobby_id) where l.lobby_id = $1 and l.namespace_id = $2`,
    [lobby_id, namespace_id],
  )
  const [row] = rows
  if (row === undefined) throw new ApiError('LOBBY_NOT_FOUND')
  const metrics = row.is_started ? await metricsOf(ctx, row) : null
  return {
    lobby: { ...summaryOf(row), ...reportedProtocol(row.protocol_report) },
    ...(metrics !== null && { metrics }),
    stdout_presigned_urls: row.is_started ? [logUrl(ctx, lobby_id, 'stdout')] : [],
    stderr_presigned_urls: row.is_started ? [logUrl(ctx, lobby_id, 'stderr')] : [],
    ...(row.ray_id === null ? { perf_lists: [], is_cut: false } : await startPerf(ctx, row.ray_id)),
  }
}

async function metricsOf(
  ctx: Context,
  { lobby_id, memory_mb }: { lobby_id: string; memory_mb: number },
): Promise<LobbyMetrics | null> {
  const metrics = await ctx.lobby_logs.metrics(lobby_id).catch((error: unknown) => {
    // Without them there is still much to tell.
    if (error instanceof ApiError && error.code === 'LOBBY_LOGS_NOT_REACHABLE') return null
    throw error
  })
  if (metrics === null) return null
  return {
    job: lobby_id,
    cpu: busyCores(metrics).map((cores) => Math.round(cores * CORE_PARTS) / CORE_PARTS),
    memory: metrics.memory_bytes,
    allocated_memory: memory_mb * 1024 ** 2,
    start_ts: timestamp(new Date(metrics.start_ts)),
    step: metrics.step_ms,
  }
}

/** Throws GAME_NOT_FOUND, and VALIDATION_ERROR when it ends before it begins. */
export async function exportHistory(ctx: Context, caller: Caller, window: QueryWindow): Promise<{ url: string }> {
  await requireGame(ctx, caller, window.game_id)
  if (window.query_end < window.query_start) {
    const message = 'query_end must not be before query_start.'
    throw validationError([{ path: ['query_end'], reason: 'too_low', message }])
  }
  return { url: historyUrl(ctx, window) }
}

function summaryOf(row: LobbyRow): LogsLobbySummary {
  const { lobby_id, namespace_id, game_mode, region, create_ts, start_ts, ready_ts, stop_ts } = row
  const { is_closed, is_stalled, is_outdated } = row
  const state =
    stop_ts === null
      ? { live: { is_idle: row.player_count === 0, is_closed, is_stalled, is_outdated } }
      : {
          stopped: {
            stop_ts: timestamp(stop_ts),
            failed: hasFailed(row),
            exit_code: exitCodeOf(row),
            exit_reason: exitReasonOf(row) ?? undefined,
          },
        }
  return {
    lobby_id,
    namespace_id,
    lobby_group_name_id: game_mode,
    region_id: idOfName(region),
    create_ts: timestamp(create_ts),
    ...(start_ts === null ? {} : { start_ts: timestamp(start_ts) }),
    ...(ready_ts === null ? {} : { ready_ts: timestamp(ready_ts) }),
    status: { running: {}, ...state },
  }
}
