// All data of a player as a file of JSON lines. Each section begins with a line of its own, and rows follow. The last line says what
// the platform keeps and cannot attribute. Rows are read in pages, as they are fetched.
import type { Context } from '../../context.ts'
import type { LogStream } from '../../lobby-logs/files.ts'
import { wholeLog } from '../../lobby-logs/lobby-logs.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { playerDataUrl } from '../export-urls.ts'
import { bindSubject, PLAYER_SECTIONS, type PlayerSection } from './sections.ts'
import { findSubject, type PlayerNamed, type PlayerSubject, requireNamed, subjectPattern } from './subject.ts'

const PAGE_ROWS_MAX = 200
/** Rows of one section. */
const ROWS_MAX = 100_000
/** Lobbies of the player whose logs are searched, the newest first. */
const LOBBIES_MAX = 200
/** Bytes of one log that are searched. */
const LOG_BYTES_MAX = 16 * 1024 * 1024
const STREAMS: readonly LogStream[] = ['stdout', 'stderr']
const REST =
  'The journal has decisions about seats until its rows are removed. Backups have rows as of their time. Neither is searched.'

/** Throws GAME_NOT_FOUND and VALIDATION_ERROR. */
export async function exportPlayerData(
  ctx: Context,
  caller: Caller,
  { game_id, ...named }: { game_id: string } & PlayerNamed,
): Promise<{ url: string }> {
  await requireGame(ctx, caller, game_id)
  return { url: playerDataUrl(ctx, { game_id, ...requireNamed(named) }) }
}

/** The lines of the file. */
export async function* playerDataLines(
  ctx: Context,
  { game_id, ...named }: { game_id: string; identity_id: string | null; address: string | null },
): AsyncGenerator<string> {
  const subject = await findSubject(ctx, game_id, named)
  yield line({ section: 'player', game_id, ...named, time: new Date(ctx.now()).toISOString() })
  for (const section of PLAYER_SECTIONS) yield* sectionLines(ctx, subject, section)
  yield* logLines(ctx, subject)
  yield line({ section: 'end', note: REST })
}

async function* sectionLines(
  { pool }: Context,
  subject: PlayerSubject,
  section: PlayerSection,
): AsyncGenerator<string> {
  const { name, select } = section
  yield line({ section: name })
  let after = ''
  for (let count = 0; count < ROWS_MAX; count += PAGE_ROWS_MAX) {
    const query = `select key, row from (${select}) found where key > $after order by key limit $limit`
    const { rows } = await pool.query<{ key: string; row: unknown }>(
      bindSubject(query, subject, { after, limit: PAGE_ROWS_MAX }),
    )
    if (rows.length > 0) yield rows.map(({ row }) => line({ [name]: row })).join('')
    if (rows.length < PAGE_ROWS_MAX) return
    after = rows.at(-1)!.key
  }
  yield line({ section: name, is_cut: true, note: `There may be more than these ${ROWS_MAX} rows.` })
}

async function* logLines({ lobby_logs }: Context, subject: PlayerSubject): AsyncGenerator<string> {
  const { lobby_ids, player_ids } = subject
  yield line({ section: 'lobby_logs' })
  const pattern = new RegExp(subjectPattern(subject))
  const isOfPlayer = (text: string): boolean => pattern.test(text) || player_ids.some((id) => text.includes(id))
  for (const lobby_id of lobby_ids.slice(0, LOBBIES_MAX)) {
    for (const stream of STREAMS) {
      for await (const lines of wholeLog(lobby_logs, lobby_id, stream, LOG_BYTES_MAX)) {
        const texts = lines.map(({ ts, bytes }) => ({ ts, text: bytes.toString() }))
        const found = texts.filter(({ text }) => isOfPlayer(text))
        yield found.map(({ ts, text }) => line({ lobby_logs: { lobby_id, stream, ts, text } })).join('')
      }
    }
  }
  if (lobby_ids.length > LOBBIES_MAX)
    yield line({ section: 'lobby_logs', is_cut: true, note: `Only the newest ${LOBBIES_MAX} lobbies were searched.` })
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}
