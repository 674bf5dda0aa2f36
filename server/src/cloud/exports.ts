// Files that are generated while they are sent: a lobby's log as text, the history of a game's lobbies or an audit log as CSV, and
// all of a game as an archive, or of a player as JSON lines. The address is signed for an hour. It is the only credential, and everything that decides the
// content is part of it. Nothing is stored for it.
//
//   <main>/exports/lobbies/<lobby_id>/stdout.txt?expires=1767225600000&signature=<hex>
//   <main>/exports/games/<game_id>/export.csv?query_start=...&query_end=...&expires=...&signature=...
//   <main>/exports/games/<game_id>/game.tar?expires=...&signature=...
//   <main>/exports/games/<game_id>/player.jsonl?identity_id=...&address=...&expires=...&signature=...
//   <main>/exports/audit/<group_id, or none>/audit.csv?query_start=...&query_end=...&expires=...&signature=...
import { timingSafeEqual } from 'node:crypto'
import { ApiError, visibleText } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { ID_FORM } from '../ids.ts'
import type { LogStream } from '../lobby-logs/files.ts'
import { wholeLog } from '../lobby-logs/lobby-logs.ts'
import { auditCsv } from './audit/csv.ts'
import { gameFileBytes } from './backups/backup-process.ts'
import { signatureOf } from './export-urls.ts'
import { lobbyCsv } from './lobbies/csv.ts'
import { playerDataLines } from './player-data/export.ts'

/** More than is kept of any log. */
const LOG_BYTES_MAX = 16 * 1024 * 1024
/** Characters of the address of an export. */
const ADDRESS_LENGTH_MAX = 512

export type ExportFile = { name: string; content_type: string; content: AsyncGenerator<string | Uint8Array> }

const MS = '(?:0|[1-9]\\d{0,14})'
const SIGNED = new RegExp(
  `^(?<address>/exports/(?:lobbies/(?<lobby_id>${ID_FORM})/(?<stream>stdout|stderr)\\.txt\\?|games/(?<packed_id>${ID_FORM})/game\\.tar\\?` +
    `|games/(?<player_game_id>${ID_FORM})/player\\.jsonl\\?` +
    `identity_id=(?<identity_id>(?:${ID_FORM})?)&address=(?<player_address>[0-9a-f:.]{0,45})&` +
    `|(?:games/(?<game_id>${ID_FORM})/export|audit/(?<audit>none|${ID_FORM})/audit)\\.csv\\?` +
    `query_start=(?<query_start>${MS})&query_end=(?<query_end>${MS})&)` +
    `expires=(?<expires>${MS}))&signature=(?<signature>[0-9a-f]{64})$`,
)

/** `url` is the target of a GET as it came. Throws API_FORBIDDEN when it is not signed, or not any more. */
export function openExport(ctx: Context, url: string): ExportFile {
  const parts = url.length > ADDRESS_LENGTH_MAX ? undefined : SIGNED.exec(url)?.groups
  if (parts === undefined) throw refused('This is not an address that the platform has signed.')
  const {
    address = '',
    signature = '',
    expires,
    lobby_id,
    stream,
    packed_id,
    player_game_id,
    identity_id,
    player_address,
    game_id = '',
    audit,
    query_start,
    query_end,
  } = parts
  if (!timingSafeEqual(Buffer.from(signature, 'hex'), signatureOf(ctx, address))) {
    throw refused('The signature is not that of this address.')
  }
  if (ctx.now() >= Number(expires)) throw refused('The address has expired: export again.')
  if (lobby_id !== undefined) {
    const content = logText(ctx, lobby_id, stream as LogStream)
    return { name: `${stream}.txt`, content_type: 'text/plain; charset=utf-8', content }
  }
  if (packed_id !== undefined) {
    const content = gameFileBytes(ctx, { kind: 'pack_game', game_id: packed_id })
    return { name: 'game.tar', content_type: 'application/x-tar', content }
  }
  if (player_game_id !== undefined) {
    const named = { game_id: player_game_id, identity_id: identity_id || null, address: player_address || null }
    return { name: 'player.jsonl', content_type: 'application/x-ndjson', content: playerDataLines(ctx, named) }
  }
  const window = { query_start: Number(query_start), query_end: Number(query_end) }
  const content_type = 'text/csv; charset=utf-8'
  if (audit === undefined) return { name: 'export.csv', content_type, content: lobbyCsv(ctx, { game_id, ...window }) }
  const group_id = audit === 'none' ? null : audit
  return { name: 'audit.csv', content_type, content: auditCsv(ctx, { group_id, ...window }) }
}

async function* logText(ctx: Context, lobby_id: string, stream: LogStream): AsyncGenerator<string> {
  for await (const lines of wholeLog(ctx.lobby_logs, lobby_id, stream, LOG_BYTES_MAX)) {
    yield lines.map(({ ts, bytes }) => `${ts.toISOString()} ${visibleText(bytes.toString())}\n`).join('')
  }
}

function refused(message: string): ApiError {
  return new ApiError('API_FORBIDDEN', {}, { message })
}
