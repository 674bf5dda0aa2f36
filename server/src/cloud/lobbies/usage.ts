// What a lobby used over its life, from the metrics that its runner keeps beside its log.
import { ApiError, type getLobbyUsage, type LobbyUsagePoint, type ResponseOf } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { makeCoarser, type RecordedMetrics, STEP_MS_MIN } from '../../lobby-logs/lobby-metrics.ts'
import type { Caller } from '../../tokens/caller.ts'
import { timestamp } from '../times.ts'
import { requireLobby } from './logs.ts'

/** Cores are rounded to a ten-thousandth. */
const CORE_PARTS = 10_000

/** Throws GAME_NOT_FOUND, LOBBY_NOT_FOUND, and LOBBY_LOGS_NOT_REACHABLE. */
export async function lobbyUsage(
  ctx: Context,
  caller: Caller,
  { game_id, lobby_id }: { game_id: string; lobby_id: string },
  step_ms_min = STEP_MS_MIN,
): Promise<ResponseOf<typeof getLobbyUsage>> {
  await requireLobby(ctx, caller, game_id, lobby_id)
  const lobby = await ctx.db
    .selectFrom('lobbies')
    .select(['create_ts', 'cpu_cores', 'memory_mb'])
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirstOrThrow(() => new ApiError('LOBBY_NOT_FOUND'))
  const metrics = await ctx.lobby_logs.metrics(lobby_id)
  // Each join doubles the step, and the longest step that a caller may ask for is a day.
  while (metrics !== null && metrics.step_ms < step_ms_min) makeCoarser(metrics)
  return {
    lobby_id,
    start_ts: timestamp(metrics === null ? lobby.create_ts : new Date(metrics.start_ts)),
    step_ms: metrics?.step_ms ?? STEP_MS_MIN,
    cpu_cores: lobby.cpu_cores,
    memory_bytes: lobby.memory_mb * 1024 ** 2,
    points: metrics === null ? [] : pointsOf(metrics),
  }
}

function pointsOf(metrics: RecordedMetrics): LobbyUsagePoint[] {
  const { start_ts, step_ms, cpu_ms, memory_bytes, seen_ts } = metrics
  return cpu_ms.map((used_ms, point) => {
    const begin = start_ts + point * step_ms
    const passed_ms = Math.max(1, Math.min(seen_ts, begin + step_ms) - begin)
    const [bytes_in, bytes_out] = [metrics.bytes_in?.[point] ?? null, metrics.bytes_out?.[point] ?? null]
    const player_count = metrics.player_count?.[point] ?? null
    return {
      ts: timestamp(new Date(begin)),
      cpu_cores: Math.round((used_ms / passed_ms) * CORE_PARTS) / CORE_PARTS,
      memory_bytes: memory_bytes[point] ?? 0,
      ...(bytes_in === null ? {} : { bytes_in: Math.round(bytes_in) }),
      ...(bytes_out === null ? {} : { bytes_out: Math.round(bytes_out) }),
      ...(player_count === null ? {} : { player_count }),
    }
  })
}
