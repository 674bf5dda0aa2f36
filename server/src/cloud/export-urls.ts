// Addresses of exports, signed for an hour. The address is the only credential, and everything that decides the content of the
// file is part of it (exports.ts).
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import type { LogStream } from '../lobby-logs/files.ts'

/** In milliseconds since the epoch. */
type Period = { query_start: number; query_end: number }

const LIFETIME_MS = 60 * 60_000

export function logUrl(ctx: Context, lobby_id: string, stream: LogStream): string {
  return presigned(ctx, `/exports/lobbies/${lobby_id}/${stream}.txt?`)
}

export function historyUrl(ctx: Context, { game_id, query_start, query_end }: { game_id: string } & Period): string {
  return presigned(ctx, `/exports/games/${game_id}/export.csv?query_start=${query_start}&query_end=${query_end}&`)
}

export function gameFileUrl(ctx: Context, game_id: string): string {
  return presigned(ctx, `/exports/games/${game_id}/game.tar?`)
}

export function playerDataUrl(
  ctx: Context,
  { game_id, identity_id, address }: { game_id: string; identity_id: string | null; address: string | null },
): string {
  return presigned(
    ctx,
    `/exports/games/${game_id}/player.jsonl?identity_id=${identity_id ?? ''}&address=${address ?? ''}&`,
  )
}

export function auditUrl(
  ctx: Context,
  { group_id, query_start, query_end }: { group_id: string | null } & Period,
): string {
  const path = `/exports/audit/${group_id ?? 'none'}/audit.csv`
  return presigned(ctx, `${path}?query_start=${query_start}&query_end=${query_end}&`)
}

function presigned(ctx: Context, path: string): string {
  const address = `${path}expires=${ctx.now() + LIFETIME_MS}`
  return `${mainUrl(ctx.config)}${address}&signature=${signatureOf(ctx, address).toString('hex')}`
}

/** The signature of an address that follows the platform's own. */
export function signatureOf(ctx: Context, address: string): Buffer {
  return ctx.keys.mac('export', `GET ${address}`)
}
