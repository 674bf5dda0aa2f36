// What happened to a lobby, in order: asked for, server, ready, players, end. A click shows the log at that moment.
import type { listMatchmakerLobbyPlayers, ResponseOf, ServicePerf } from '@muster/contract'
import { Link } from '@tanstack/react-router'
import { rayLink } from '../../links.ts'
import { shortId } from '../../parts/copy.tsx'
import { duration, instant, timeOfDay } from '../../parts/numbers.ts'
import { exitText, type PastLobby } from './past-lobby.tsx'

export type Player = ResponseOf<typeof listMatchmakerLobbyPlayers>['players'][number]
export type LobbyEvent = {
  id: string
  ts_ms: number
  text: string
  tone: 'plain' | 'good' | 'warn' | 'bad'
  ray_id?: string
}

export function eventsOf(
  lobby: PastLobby,
  players: readonly Player[],
  perf_lists: readonly ServicePerf[] = [],
): LobbyEvent[] {
  const events: LobbyEvent[] = []
  function add(
    id: string,
    ts: string | undefined,
    text: string,
    tone: LobbyEvent['tone'] = 'plain',
    ray_id?: string,
  ): void {
    if (ts === undefined) return
    events.push({ id, ts_ms: Date.parse(ts), text, tone, ...(ray_id === undefined ? {} : { ray_id }) })
  }
  const request = perf_lists.find(({ svc_name }) => svc_name === 'matchmaker') ?? perf_lists[0]
  add('requested', request?.ts, `requested by ${request?.operation}`, 'plain', request?.req_id)
  add('created', lobby.create_ts, `created in the mode ${lobby.lobby_group_name_id}`)
  add('started', lobby.start_ts, 'server started')
  add('ready', lobby.ready_ts, 'server ready', 'good')
  for (const { player_id, create_ts, connect_ts } of players) {
    add(`reserved ${player_id}`, create_ts, `player ${shortId(player_id)} reserved a seat`)
    add(`connected ${player_id}`, connect_ts, `player ${shortId(player_id)} connected`)
  }
  const { stopped } = lobby.status
  const end = stopped === undefined ? '' : `${stopped.failed ? 'failed' : 'ended'}: ${exitText(stopped.exit_code)}`
  add('ended', stopped?.stop_ts, end, stopped?.failed === true ? 'bad' : 'plain')
  return events.sort((a, b) => a.ts_ms - b.ts_ms)
}

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
            {event.ray_id === undefined ? null : (
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
