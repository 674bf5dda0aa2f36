// What happened to a lobby, in the order of time. The tables have most of it; the journal has what the tables overwrite:
// closed and reopened, stalled and responding. A page reads a limited number of rows of the journal.
import {
  type getLobbyTimeline,
  type LobbyEventKind,
  type LobbyTimelineEvent,
  type QueryOf,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { exitCodeOf } from '../../database/exit-code.ts'
import type { Caller } from '../../tokens/caller.ts'
import { timestamp } from '../times.ts'
import { type JournalEvent, readJournalEvents, seqBefore } from './journal-events.ts'
import { requireLobby } from './logs.ts'

const PAGE_DEFAULT = 200
const CURSOR = /^(\d{1,15})\.(\d{1,2})\.([0-9a-f-]{0,40})\.(\d{1,16})$/

/** The order of events of the same millisecond. */
const RANKS = [
  'requested',
  'created',
  'process_started',
  'listening',
  'ready',
  'player_reserved',
  'player_connected',
  'closed',
  'player_left',
  'stopped',
  'exited',
] as const satisfies readonly LobbyEventKind[]
const JOURNAL_RANK = RANKS.indexOf('closed')
const rankOf = (kind: (typeof RANKS)[number]): number => RANKS.indexOf(kind)

/** `id`: the player, or the place in the journal, or empty. */
type Key = { ts_ms: number; rank: number; id: string }
type Event = Key & { event: LobbyTimelineEvent }
/** `seq`: the last row of the journal whose events are all on earlier pages. */
type Position = Key & { seq: number }
type Lobby = { lobby_id: string; namespace_id: string; create_ts: Date; stop_ts: Date | null }

type EventRow = Key & {
  kind: LobbyEventKind
  ts: Date
  player_id: string | null
  reason: string | null
  exit_code: number | null
  ray_id: string | null
  operation: string | null
}

/** Throws GAME_NOT_FOUND, LOBBY_NOT_FOUND, and VALIDATION_ERROR for what is no cursor. */
export async function lobbyTimeline(
  ctx: Context,
  caller: Caller,
  { game_id, lobby_id }: { game_id: string; lobby_id: string },
  { cursor, limit = PAGE_DEFAULT }: QueryOf<typeof getLobbyTimeline>,
): Promise<ResponseOf<typeof getLobbyTimeline>> {
  await requireLobby(ctx, caller, game_id, lobby_id)
  const known = cursor === undefined ? null : requireCursor(cursor)
  const lobby = await ctx.db
    .selectFrom('lobbies')
    .select(['lobby_id', 'namespace_id', 'create_ts', 'stop_ts'])
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirst()
  // Retention removed the lobby meanwhile: no event is kept.
  if (lobby === undefined) return { events: [] }
  const after = known ?? (await startOf(ctx, lobby))
  const from_tables = await tableEvents(ctx, lobby_id, after, limit + 1)
  const scan = await readJournalEvents(ctx.pool, { ...lobby, after: after.seq })
  const from_journal = scan.events.map(eventOf).filter((event) => compare(event, after) > 0)
  const found = [...from_tables, ...from_journal].sort(compare)
  const passed = scan.read_ms === null ? found : found.filter(({ ts_ms }) => ts_ms < scan.read_ms!)
  const page = passed.slice(0, limit)
  const events = page.map(({ event }) => event)
  if (scan.read_ms === null && page.length === found.length) return { events }
  const last = page.at(-1) ?? after
  const rest = from_journal.filter((event) => compare(event, last) > 0)
  const seq = rest.length === 0 ? scan.seq : seqOf(rest[0]!.id) - 1
  return { events, next_cursor: `${last.ts_ms}.${last.rank}.${last.id}.${seq}` }
}

async function startOf(ctx: Context, { namespace_id, create_ts }: Lobby): Promise<Position> {
  return { ts_ms: 0, rank: 0, id: '', seq: await seqBefore(ctx.pool, namespace_id, create_ts.getTime()) }
}

async function tableEvents(ctx: Context, lobby_id: string, after: Key, rows_max: number): Promise<Event[]> {
  const { rows } = await ctx.pool.query<EventRow & { exit_reason: string | null }>(EVENTS_SQL, [
    lobby_id,
    ...[after.ts_ms, after.rank, after.id],
    rows_max,
  ])
  return rows.map(({ ts_ms, rank, id, ts, kind, player_id, reason, ray_id, operation, ...row }) => {
    const exit_code = kind === 'exited' ? exitCodeOf({ exit_code: row.exit_code, exit_reason: reason }) : null
    const optional = { player_id, reason, exit_code, ray_id, operation }
    const members = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null))
    return { ts_ms, rank, id, event: { ts: timestamp(ts), kind, ...members } }
  })
}

/**
 * Selects the first $5 events of lobby $1 after the key of $2, $3 and $4. The first request about a player took the seat.
 * The runner checks in intervals whether a server listens, so a server may have called ready before that check.
 */
const EVENTS_SQL = `
  with lobby as (select * from lobbies where lobby_id = $1), run as (select * from lobby_runs where lobby_id = $1),
    request as (
      select s.ts, s.ray_id, s.operation from lobby join ray_spans s using (ray_id)
      where s.service in ('api', 'matchmaker') and s.owner_id = lobby.namespace_id
      order by abs(extract(epoch from s.ts - lobby.create_ts)) limit 1
    ),
    listening as (
      select least(s.ts + (span ->> 2)::bigint * interval '1 microsecond', lobby.ready_ts) as ts
      from lobby join ray_spans s using (ray_id), jsonb_array_elements(s.spans) as span
      where s.service = 'runner' and s.owner_id = lobby.namespace_id and span ->> 0 = 'listen'
        and s.spans @> '[["ready"]]' limit 1
    ),
    event (rank, ts, id, player_id, reason, exit_code, ray_id, operation) as (
      select ${rankOf('requested')}, ts, '', null::uuid, null::text, null::integer, ray_id, operation from request
      union all select ${rankOf('created')}, create_ts, '', null, null, null, null, null from lobby
      union all select ${rankOf('process_started')}, start_ts, '', null, null, null, null, null from run
      union all select ${rankOf('listening')}, ts, '', null, null, null, null, null from listening
      union all select ${rankOf('ready')}, ready_ts, '', null, null, null, null, null from lobby
      union all select seat.rank, seat.ts, player_id::text, player_id, seat.reason, null, null, null
        from players, lateral (values (${rankOf('player_reserved')}, create_ts, null),
          (${rankOf('player_connected')}, connect_ts, null), (${rankOf('player_left')}, remove_ts, remove_reason)
        ) as seat (rank, ts, reason) where lobby_id = $1
      union all select ${rankOf('stopped')}, stop_ts, '', null, stop_reason, null, null, null from lobby
      union all select ${rankOf('exited')}, exit_ts, '', null, exit_reason, exit_code, null, null from run
    ),
    keyed as (
      select *, floor(extract(epoch from ts) * 1000)::bigint as ts_ms, (array['${RANKS.join("', '")}'])[rank + 1] as kind
      from event where ts is not null
    ),
    page as (
      select * from keyed where (ts_ms, rank, id collate "C") > ($2::bigint, $3::integer, $4::text collate "C")
      order by ts_ms, rank, id collate "C" limit $5
    )
  select ts_ms, rank, id, ts, kind, page.player_id, reason, exit_code, coalesce(page.ray_id, seat.ray_id) as ray_id,
    coalesce(page.operation, seat.operation) as operation
  from page left join lateral (
    select s.ray_id, s.operation from ray_spans s
      where page.kind = 'player_reserved' and s.player_id = page.player_id and s.code is null order by s.ts limit 1
  ) as seat on true
  order by ts_ms, rank, id collate "C"`

function eventOf({ ts_ms, seq, index, kind }: JournalEvent): Event {
  const id = `${String(seq).padStart(16, '0')}-${String(index).padStart(6, '0')}`
  return { ts_ms, rank: JOURNAL_RANK, id, event: { ts: timestamp(new Date(ts_ms)), kind } }
}

const seqOf = (id: string): number => Number(id.split('-')[0])

function compare(one: Key, other: Key): number {
  if (one.ts_ms !== other.ts_ms) return one.ts_ms - other.ts_ms
  if (one.rank !== other.rank) return one.rank - other.rank
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

function requireCursor(cursor: string): Position {
  const match = CURSOR.exec(cursor)
  if (match === null) {
    const message = 'A cursor is the next_cursor of the previous page.'
    throw validationError([{ path: ['cursor'], reason: 'invalid', message }])
  }
  return { ts_ms: Number(match[1]), rank: Number(match[2]), id: match[3]!, seq: Number(match[4]) }
}
