// Reads an explanation: what was logged of a request, and how the lobbies that it was given ended.
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type ErrorCode, type Explanation } from '@musterhost/contract'
import { unnamedProxies } from '../../addresses/unnamed-proxies.ts'
import type { Context } from '../../context.ts'
import { connectionWarnings } from '../../lobby-logs/connection-warnings.ts'
import { reportedProtocol } from '../../lobby-logs/reported-protocol.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { ExplanationStore } from './store.ts'

/** The refusal that players behind an unnamed proxy get. */
const CLIENT_LIMIT: ErrorCode = 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
/** What the other processes are given to write what they have. */
const WRITE_MS = 250

type Logged = Pick<Explanation, 'asked' | 'captcha' | 'verification' | 'attempts' | 'waits'>

/** `game_id`: the game whose request it was. Throws RAY_NOT_FOUND: there is no such request, or its explanation was not kept. */
export async function readExplanation(
  ctx: Context,
  store: ExplanationStore,
  ray_id: string,
): Promise<{ game_id: string; explanation: Explanation }> {
  await store.flush()
  let ray = await readRow(ctx, ray_id)
  if (ray === undefined) {
    // The process that had the request may not have written it yet.
    await ctx.listener.notify(CHANNELS.explanations_wanted)
    await delay(WRITE_MS)
    ray = await readRow(ctx, ray_id)
  }
  if (ray === undefined) throw new ApiError('RAY_NOT_FOUND')
  const logged = JSON.parse(ray.explanation) as Logged
  const unnamed_proxy = ray.code === CLIENT_LIMIT ? (await unnamedProxies(ctx.pool))[0]?.address : undefined
  const failed = logged.attempts.map(({ failed_starts }) => ({ lobby_id: failed_starts?.last_lobby_id }))
  const lobby_ids = new Set([...logged.attempts, ...logged.waits, ...failed].flatMap(({ lobby_id }) => lobby_id ?? []))
  return {
    game_id: ray.game_id,
    explanation: {
      ray_id,
      create_ts: ray.create_ts.toISOString(),
      operation: ray.operation,
      namespace_id: ray.namespace_id,
      duration: Number(ray.duration_us),
      ...(ray.code === null ? {} : { code: ray.code }),
      ...logged,
      ...(unnamed_proxy === undefined ? {} : { unnamed_proxy }),
      lobbies: await lobbyEnds(ctx, [...lobby_ids]),
    },
  }
}

function readRow({ db }: Pick<Context, 'db'>, ray_id: string) {
  return db
    .selectFrom('explanations')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'explanations.namespace_id')
    .where('ray_id', '=', ray_id)
    .select([
      'game_id',
      'explanations.namespace_id',
      'operation',
      'explanations.create_ts',
      'duration_us',
      'code',
      'explanation',
    ])
    .executeTakeFirst()
}

async function lobbyEnds({ db }: Pick<Context, 'db'>, lobby_ids: string[]): Promise<Explanation['lobbies']> {
  if (lobby_ids.length === 0) return []
  const rows = await db
    .selectFrom('lobbies')
    .leftJoin('lobby_runs', 'lobby_runs.lobby_id', 'lobbies.lobby_id')
    .leftJoin('lobby_traffic', 'lobby_traffic.lobby_id', 'lobbies.lobby_id')
    .where('lobbies.lobby_id', 'in', lobby_ids)
    .orderBy('lobbies.create_ts')
    .select(['lobbies.lobby_id', 'ready_ts', 'stop_reason', 'exit_code', 'exit_reason', 'log_tail', 'listening'])
    .select('protocol_report')
    .select(['seats_expired_while_connected', 'connections_at_stop', 'refused_count', 'refused_client'])
    .execute()
  return rows.map(
    ({
      lobby_id,
      ready_ts,
      stop_reason,
      exit_code,
      exit_reason,
      log_tail,
      listening,
      protocol_report,
      refused_count,
      ...connections
    }) => {
      // For a server that was not ready in time this is the reason, however its process ended afterwards.
      const reason = stop_reason === 'never_ready' ? stop_reason : exit_reason
      return {
        lobby_id,
        is_ready: ready_ts !== null,
        ...(stop_reason === null ? {} : { stop_reason }),
        ...(exit_code === null ? {} : { exit_code }),
        ...(reason === null ? {} : { exit_reason: reason }),
        ...reportedProtocol(protocol_report),
        ...(listening === null ? {} : { listening: { ...listening, others: listening.others ?? undefined } }),
        log_lines: log_tail ?? [],
        warnings: connectionWarnings({ stop_reason, refused_count: Number(refused_count ?? 0), ...connections }),
      }
    },
  )
}
