// What happened to a lobby, in order: asked for, server, ready, players, end. A click shows the log at that moment.
import type { LobbyTimelineEvent, listMatchmakerLobbyPlayers, ResponseOf } from '@musterhost/contract'
import { Link } from '@tanstack/react-router'
import { useEffect, useMemo } from 'react'
import { getLobbyTimeline, getRayPerfLogs } from '../../api/operations.gen.ts'
import { useEntries, usePages } from '../../api/queries.ts'
import { rayLink } from '../../links.ts'
import { shortId } from '../../parts/copy.tsx'
import { duration, instant, timeOfDay } from '../../parts/numbers.ts'
import { useMay } from '../game/game.ts'
import { exitText } from './past-lobby.tsx'

const TIMELINE_EVERY_MS = 2_000
const TIMELINE_PAGE = 500

export type LobbyPlayer = ResponseOf<typeof listMatchmakerLobbyPlayers>['players'][number]
export type LobbyEvent = {
  id: string
  ts_ms: number
  text: string
  tone: 'plain' | 'good' | 'warn' | 'bad'
  ray_id?: string
  /** Why the platform stopped the lobby. Only of that event. */
  stop_reason?: string
}

/** Loads the first page again and again, and the next page at once when a page has only searched the journal. */
export function useTimeline(game_id: string, lobby_id: string) {
  const params = { game_id, lobby_id }
  const query = { limit: TIMELINE_PAGE }
  const read = usePages(
    getLobbyTimeline,
    { params, query },
    ({ next_cursor }) => (next_cursor === undefined ? null : { params, query: { ...query, cursor: next_cursor } }),
    { every_ms: TIMELINE_EVERY_MS },
  )
  const { fetchNextPage, hasNextPage, isFetching } = read
  const is_empty = read.data?.pages.at(-1)?.events.length === 0
  useEffect(() => {
    if (is_empty && hasNextPage && !isFetching) void fetchNextPage()
  }, [is_empty, hasNextPage, isFetching, fetchNextPage])
  const entries = useEntries(read.data?.pages, (page) => page.events)
  return {
    events: useMemo(() => eventsOf(entries), [entries]),
    seats: useMemo(() => seatsOf(entries), [entries]),
    read,
  }
}

/** The request that took a seat, where its ray is kept. */
export type SeatOrigin = { ray_id: string; operation: string } | 'not kept'

/** By player. Of players whose event is on a later page, nothing is known. */
function seatsOf(entries: readonly LobbyTimelineEvent[]): ReadonlyMap<string, SeatOrigin> {
  return new Map(
    entries.flatMap(({ kind, player_id, ray_id, operation }) => {
      if (kind !== 'player_reserved' || player_id === undefined) return []
      const request = ray_id === undefined || operation === undefined ? 'not kept' : { ray_id, operation }
      return [[player_id, request] as const]
    }),
  )
}

function eventsOf(entries: readonly LobbyTimelineEvent[]): LobbyEvent[] {
  const counts = new Map<string, number>()
  return entries.map((entry) => {
    const { kind, ts, player_id, ray_id } = entry
    const key = `${kind} ${player_id} ${ts}`
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    const id = `${key} ${count}`
    return { id, ts_ms: Date.parse(ts), ...wordsOf(entry), ...(ray_id === undefined ? {} : { ray_id }) }
  })
}

const REASONS: Readonly<Record<string, string>> = {
  disconnected: 'disconnected',
  expired: 'did not connect in time',
  too_long: 'stayed longer than allowed',
  lobby_stopped: 'the lobby stopped',
  unanswered: 'the request got no response',
  never_ready: 'the server was never ready',
  idle: 'no player had a seat',
  outdated: 'another version is deployed',
  exited: 'its server ended',
  requested: 'a developer asked for it',
  node_lost: 'its node was away for too long',
  node_drained: 'its node was drained',
  node_removed: 'its node was removed',
}

function wordsOf(event: LobbyTimelineEvent): Pick<LobbyEvent, 'text' | 'tone' | 'stop_reason'> {
  const player = `player ${shortId(event.player_id ?? '')}`
  const by = event.operation === undefined ? '' : ` by ${event.operation}`
  const reason = REASONS[event.reason ?? ''] ?? event.reason ?? 'unknown'
  switch (event.kind) {
    case 'requested':
      return { text: `requested${by}`, tone: 'plain' }
    case 'created':
      return { text: 'created', tone: 'plain' }
    case 'process_started':
      return { text: 'server started', tone: 'plain' }
    case 'listening':
      return { text: 'server listens', tone: 'plain' }
    case 'ready':
      return { text: 'server ready', tone: 'good' }
    case 'player_reserved':
      return { text: `${player} reserved a seat${by}`, tone: 'plain' }
    case 'player_connected':
      return { text: `${player} connected`, tone: 'plain' }
    case 'player_left':
      return { text: `${player} left: ${reason}`, tone: event.reason === 'disconnected' ? 'plain' : 'warn' }
    case 'closed':
      return { text: 'closed: find leaves it out', tone: 'warn' }
    case 'reopened':
      return { text: 'open again', tone: 'plain' }
    case 'stalled':
      return { text: 'server stopped responding', tone: 'bad' }
    case 'responding':
      return { text: 'server responds again', tone: 'good' }
    case 'stopped':
      return { text: `stopped: ${reason}`, tone: event.reason === 'never_ready' ? 'bad' : 'plain', stop_reason: reason }
    case 'exited':
      return {
        text: `server ended: ${exitText(event.exit_code ?? -1, event.reason)}`,
        tone: hasFailed(event) ? 'bad' : 'plain',
      }
  }
}

const hasFailed = ({ reason, exit_code }: LobbyTimelineEvent): boolean =>
  reason !== 'stopped' && (reason !== 'exit' || exit_code !== 0)

const DOTS: Record<LobbyEvent['tone'], string> = {
  plain: 'bg-soft',
  good: 'bg-good',
  warn: 'bg-warn',
  bad: 'bg-bad',
}

type TimelineProps = {
  game_id: string
  events: readonly LobbyEvent[]
  selected: string | null
  /** Null: the person may not read the log. */
  onSelect: ((event: LobbyEvent) => void) | null
}

export function Timeline({ game_id, events, selected, onSelect }: TimelineProps) {
  const first_ms = events[0]?.ts_ms ?? 0
  const may_open_ray = useMay()(getRayPerfLogs)
  return (
    <ol className="max-h-96 overflow-y-auto p-2" aria-label="Timeline">
      {events.map((event) => (
        <li
          key={event.id}
          className={`flex items-baseline gap-2 rounded px-2 py-1 ${selected === event.id ? 'bg-mark' : ''}`}
        >
          <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${DOTS[event.tone]}`} />
          <time
            dateTime={new Date(event.ts_ms).toISOString()}
            title={instant(event.ts_ms)}
            className="numbers text-xs whitespace-nowrap text-soft"
          >
            {timeOfDay(event.ts_ms)}
          </time>
          <span className="min-w-0 flex-1 wrap-anywhere">
            {onSelect === null ? (
              event.text
            ) : (
              <button
                type="button"
                title="Show the log at this moment"
                aria-pressed={selected === event.id}
                className="cursor-pointer text-left hover:underline"
                onClick={() => onSelect(event)}
              >
                {event.text}
              </button>
            )}
            {event.ray_id === undefined || !may_open_ray ? null : (
              <>
                {' '}
                <Link to={rayLink(game_id, event.ray_id)}>ray</Link>
              </>
            )}
          </span>
          <span className="numbers text-xs whitespace-nowrap text-soft">+{duration(event.ts_ms - first_ms)}</span>
        </li>
      ))}
    </ol>
  )
}
