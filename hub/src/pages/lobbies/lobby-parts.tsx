// Parts of the pages about lobbies: the state in words, and the seats as a bar.
import { barColor } from '../../parts/meter.tsx'
import { Badge, type Tone } from '../../parts/notice.tsx'
import { bytes, count, plural } from '../../parts/numbers.ts'
import type { Game } from '../game/game.ts'
import { type LobbyFlags, type LobbyState, stateOf, useShare } from './arrange.ts'
import type { LiveLobby, LiveLobbyStore } from './live-lobbies.ts'

const TONES: Record<LobbyState, Tone> = {
  starting: 'plain',
  ready: 'good',
  idle: 'plain',
  closed: 'plain',
  stalled: 'bad',
  outdated: 'warn',
}
export const STATE_HELP: Record<LobbyState, string> = {
  starting: 'The server is not ready yet.',
  ready: 'Players play, or may join.',
  idle: 'The lobby is ready and has no players.',
  closed: 'Find leaves the lobby out.',
  stalled: 'The server has stopped responding. The lobby takes no new players.',
  outdated: 'Another version is deployed now.',
}

export function LobbyStates({ lobby }: { lobby: LobbyFlags }) {
  const state = stateOf(lobby)
  return (
    <span className="inline-flex gap-1">
      <span title={STATE_HELP[state]}>
        <Badge tone={TONES[state]}>{state}</Badge>
      </span>
      {lobby.is_outdated ? ' ' : null}
      {lobby.is_outdated ? (
        <span title={STATE_HELP.outdated}>
          <Badge tone={TONES.outdated}>outdated</Badge>
        </span>
      ) : null}
    </span>
  )
}

/** Connected seats are dark, reserved ones light, free ones empty. The numbers stand beside the bar. */
export function SeatBar({ lobby }: { lobby: LiveLobby }) {
  const { registered_player_count: connected, total_player_count: taken, max_players_normal: seats } = lobby
  const shareOf = (value: number): string => `${Math.min(100, (value / Math.max(1, seats)) * 100)}%`
  const reserved = taken - connected
  return (
    <span
      className="flex items-center gap-2"
      title={`${count(connected)} connected, ${count(reserved)} reserved, ${count(seats)} seats`}
    >
      <span aria-hidden="true" className="relative h-2 min-w-8 flex-1 overflow-hidden rounded-sm bg-code">
        <span className="absolute inset-y-0 left-0 bg-accent opacity-40" style={{ width: shareOf(taken) }} />
        <span className="absolute inset-y-0 left-0 bg-accent" style={{ width: shareOf(connected) }} />
      </span>
      <span className="numbers w-14 text-right whitespace-nowrap">
        {count(taken)} / {count(seats)}
      </span>
    </span>
  )
}

/** What the lobby uses of one limit, in numbers and as a bar. Nothing before the first sample. */
export function UseBar({ lobby, of }: { lobby: LiveLobby; of: 'cpu_cores' | 'memory_bytes' }) {
  const share = useShare(lobby, of)
  if (share === undefined) return null
  const used = lobby.usage?.[of] ?? 0
  const limit = lobby.limits[of]
  const title = of === 'cpu_cores' ? `${used} of ${plural(limit, 'core')}` : `${bytes(used)} of ${bytes(limit)}`
  return (
    <span className="flex items-center gap-2" title={title}>
      <span aria-hidden="true" className="h-2 min-w-6 flex-1 overflow-hidden rounded-sm bg-code">
        <span className={`block h-full ${barColor(share)}`} style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span className="numbers w-16 text-right whitespace-nowrap">
        {of === 'cpu_cores' ? `${Math.round(share * 100)} %` : bytes(used)}
      </span>
    </span>
  )
}

/** The name of a region: its id when the platform no longer has it. */
export function regionName(game: Game, region_id: string): string {
  return game.available_regions.find((region) => region.region_id === region_id)?.region_display_name ?? region_id
}

/** Whether the shown lobbies follow the platform. */
export function FeedMark({ live }: { live: LiveLobbyStore }) {
  if (live.feed === 'live' && live.is_loaded) return <Badge tone="good">live</Badge>
  return live.feed === 'lost' ? <Badge tone="bad">not live</Badge> : <Badge>connecting</Badge>
}
