// Where the time of a request went, assembled from the parts that each role wrote, and who may read it. For all others the
// ray does not exist. Viewers of a group are among them: requests of players are not theirs to read.
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type getRayPerfLogs, type ResponseOf, type ServicePerf } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame } from '../access.ts'
import { cut } from '../lists.ts'

/** What is older has been written. */
const NEW_MS = 60_000
/** What those who took part in a new one are given to write it. */
const WRITE_MS = 250
/** A request is forwarded to one service and starts one lobby. A client may have sent its id with other calls too. */
const PARTS_MAX = 64

/** Throws RAY_NOT_FOUND. */
export async function rayPerf(
  ctx: Context,
  caller: Caller,
  ray_id: string,
): Promise<ResponseOf<typeof getRayPerfLogs>> {
  const parts = await writtenParts(ctx, ray_id)
  await requireReader(ctx, caller, parts)
  return perfLists(parts)
}

/** For the request that started a lobby, to a caller that may see the lobby. */
export async function startPerf(ctx: Context, ray_id: string): Promise<ResponseOf<typeof getRayPerfLogs>> {
  return perfLists(await writtenParts(ctx, ray_id))
}

function perfLists(parts: readonly Part[]): ResponseOf<typeof getRayPerfLogs> {
  const { rows, is_cut } = cut(parts, PARTS_MAX)
  return { perf_lists: rows.map(perfOf), is_cut }
}

/** A ray id does not tell its time: a ray without any part that is old may still be about to be written. */
async function writtenParts(ctx: Context, ray_id: string): Promise<Part[]> {
  const parts = await readParts(ctx, ray_id)
  const oldest_new_us = (ctx.now() - NEW_MS) * 1_000
  if (parts.some((part) => part.ts_us < oldest_new_us)) return parts
  await ctx.listener.notify(CHANNELS.rays)
  await delay(WRITE_MS)
  return readParts(ctx, ray_id)
}

/** Throws RAY_NOT_FOUND unless the caller is a developer of the game or uses its cloud token. */
export async function requireDeveloper(ctx: Context, caller: Caller, game_id: string): Promise<void> {
  try {
    await requireGame(ctx, caller, game_id, 'RAY_NOT_FOUND')
  } catch (error) {
    const is_viewer = error instanceof ApiError && error.code === 'GROUP_INSUFFICIENT_PERMISSIONS'
    throw is_viewer ? new ApiError('RAY_NOT_FOUND') : error
  }
}

type Part = Awaited<ReturnType<typeof readParts>>[number]

function readParts({ db }: Context, ray_id: string) {
  return db
    .selectFrom('ray_spans')
    .leftJoin('namespaces', (join) =>
      join.onRef('namespaces.namespace_id', '=', 'owner_id').on('owner_kind', '=', 'namespace'),
    )
    .where('ray_id', '=', ray_id)
    .orderBy('ts')
    .limit(PARTS_MAX + 1)
    .select([
      'ray_id',
      'service',
      'operation',
      'code',
      'owner_kind',
      'owner_id',
      'game_id',
      'duration_us',
      'spans',
      'marks',
    ])
    .select(sql<number>`(extract(epoch from ts) * 1000000)::bigint`.as('ts_us'))
    .execute()
}

/** One part's owner may see all of it: it is one request. */
async function requireReader(ctx: Context, caller: Caller, parts: readonly Part[]): Promise<void> {
  if (parts.length === 0) throw new ApiError('RAY_NOT_FOUND')
  if (caller.kind === 'admin') return
  const isOwn = ({ owner_kind, owner_id }: Part): boolean =>
    owner_kind === 'user' && caller.kind === 'user' && owner_id === caller.user_id
  if (parts.some(isOwn)) return
  const game_id = parts.map((part) => (part.owner_kind === 'game' ? part.owner_id : part.game_id)).find(Boolean)
  if (game_id == null) throw new ApiError('RAY_NOT_FOUND')
  await requireDeveloper(ctx, caller, game_id)
}

function perfOf({ ray_id: req_id, service, operation, code, ts_us, duration_us, spans, marks }: Part): ServicePerf {
  const at = (offset_us: number): string => microtime(ts_us + offset_us)
  const shown = marks.map(([label, offset, ray_id]) => {
    return { label, ...(ray_id !== undefined && { ray_id }), req_id, ts: at(offset) }
  })
  return {
    svc_name: service,
    operation,
    req_id,
    ts: at(0),
    duration: duration_us,
    spans: spans.map(([label, from, to]) => ({ label, req_id, start_ts: at(from), finish_ts: at(to) })),
    marks: code === null ? shown : [...shown, { label: code, req_id, ts: at(duration_us) }],
  }
}

/** RFC 3339, UTC, with microseconds. */
export function microtime(us: number): string {
  const text = new Date(Math.floor(us / 1_000)).toISOString()
  return `${text.slice(0, -1)}${String(us % 1_000).padStart(3, '0')}Z`
}
