// Counts the data sets of an hour in the simplest way: for every bucket anew, over each lobby and each player of the script.
// It shares only the names of the members with the code that it is compared with.
import type { AnalyticsVariant } from '@musterhost/contract'
import { idOfName } from '../../src/ids.ts'
import type { Lobby, Player } from './hour.ts'

export type Asked = { start_ms: number; end_ms: number; width_s: number; now_ms: number }
type Hour = { lobbies: readonly Lobby[]; players: readonly Player[] }
type Bucket = { from: number; to: number; seconds: number }

export function countPlainly(
  hour: Hour,
  asked: Asked,
): Record<Exclude<AnalyticsVariant, 'find_duration' | 'match_wait'>, unknown> {
  const { lobbies, players } = hour
  const { now_ms } = asked
  const width_ms = asked.width_s * 1_000
  const from_ms = Math.floor(asked.start_ms / width_ms) * width_ms
  const to_ms = Math.ceil(asked.end_ms / width_ms) * width_ms
  const buckets: Bucket[] = []
  for (let from = from_ms; from < to_ms && from < now_ms; from += width_ms) {
    buckets.push({ from, to: from + width_ms, seconds: (Math.min(from + width_ms, now_ms) - from) / 1_000 })
  }
  const within = (ms: number | null, { from, to }: Pick<Bucket, 'from' | 'to'>): boolean =>
    ms !== null && ms >= from && ms < to

  const lobbiesAt = (ms: number, of = lobbies) =>
    of.filter(({ created, stopped }) => created < ms && !(stopped !== null && stopped < ms))
  const playersAt = (ms: number, of = players) =>
    of.filter(({ reserved, left }) => reserved < ms && !(left !== null && left < ms))
  const isConnectedAt = (ms: number, player: Player) =>
    player.connections.some(([from, to]) => from < ms && !(to !== null && to < ms))
  const isClosedAt = (ms: number, lobby: Lobby) =>
    lobby.closed.some(([from, to]) => from < ms && !(to !== null && to < ms))
  const isUnreadyAt = (ms: number, { ready }: Lobby) => !(ready !== null && ready < ms)

  const whole = { from: from_ms, to: to_ms }
  const played = (of: readonly Player[]): number[] =>
    of
      .filter(({ connections }) => connections.length > 0)
      .map(({ connections }) => connections.reduce((sum, [from, to]) => sum + (to! - from), 0))
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const leftIn = (bucket: Pick<Bucket, 'from' | 'to'>, of = players) => of.filter(({ left }) => within(left, bucket))
  const stoppedIn = (bucket: Bucket) => lobbies.filter(({ stopped }) => within(stopped, bucket))

  /** The lines of a chart: what there was at some time of the window. */
  const lines = <T>(nameOf: (lobby: Lobby) => string, tell: (name: string) => T): T[] => {
    const there = lobbies.filter(
      ({ created, stopped }) => created < Math.min(to_ms, now_ms + 1) && !(stopped !== null && stopped < from_ms),
    )
    return [...new Set(there.map(nameOf))].toSorted().map(tell)
  }
  const regions = lines(
    ({ region }) => region,
    (region) => ({
      names: { region_id: idOfName(region), region_name_id: region },
      is: (lobby: Lobby) => lobby.region === region,
    }),
  )
  const game_modes = lines(
    ({ game, game_mode }) => `${game_mode} ${game.game_id}`,
    (line) => {
      const [game_mode, game_id] = line.split(' ') as [string, string]
      return {
        names: { game_mode_id: idOfName(game_mode, game_id), game_mode_name_id: game_mode },
        is: (lobby: Lobby) => lobby.game_mode === game_mode && lobby.game.game_id === game_id,
      }
    },
  )
  const rows = <T>(tell: (bucket: Bucket) => T[]): T[] => buckets.flatMap(tell)
  type Line = (typeof regions | typeof game_modes)[number]
  const players_by = (by: readonly Line[]) =>
    rows(({ from, to }) =>
      by.map(({ names, is }) => ({
        ...names,
        ts: from,
        player_count: playersAt(to).filter(({ lobby }) => is(lobby)).length,
      })),
    )
  const lobbies_by = (by: readonly Line[]) =>
    rows(({ from, to }) =>
      by.map(({ names, is }) => ({ ...names, ts: from, lobby_count: lobbiesAt(to).filter(is).length })),
    )
  const played_by = (by: readonly Line[]) =>
    by.flatMap(({ names, is }) => {
      const values = played(leftIn(whole).filter(({ lobby }) => is(lobby)))
      return values.length === 0 ? [] : [{ ...names, duration: mean(values) }]
    })

  const exit_codes = [...new Set(buckets.flatMap(stoppedIn).flatMap(({ exit_code }) => exit_code ?? []))].toSorted(
    (a, b) => a - b,
  )
  return {
    matchmaker_overview: {
      lobby_count: lobbies.filter(({ stopped }) => stopped === null).length,
      player_count: players.filter(({ left }) => left === null).length,
    },
    player_count: columns(
      rows(({ from, to }) => {
        const there = playersAt(to)
        const unready = there.filter((player) => !isConnectedAt(to, player))
        return [{ player_count: there.length, player_unready_count: unready.length, ts: from }]
      }),
    ),
    player_count_by_region: columns(players_by(regions)),
    player_count_by_game_mode: columns(players_by(game_modes)),
    lobby_count: columns(
      rows(({ from, to }) => {
        const there = lobbiesAt(to)
        const unready = there.filter((lobby) => isUnreadyAt(to, lobby))
        return [
          {
            lobby_closed_count: there.filter((lobby) => isClosedAt(to, lobby)).length,
            lobby_count: there.length,
            lobby_preemptive_count: unready.filter(({ is_custom }) => !is_custom).length,
            lobby_unready_count: unready.length,
            ts: from,
          },
        ]
      }),
    ),
    lobby_count_by_region: columns(lobbies_by(regions)),
    lobby_count_by_game_mode: columns(lobbies_by(game_modes)),
    avg_play_duration: columns(
      rows((bucket) => {
        const values = played(leftIn(bucket))
        return values.length === 0 ? [] : [{ duration: mean(values), ts: bucket.from }]
      }),
    ),
    avg_play_duration_by_region: columns(played_by(regions)),
    avg_play_duration_by_game_mode: columns(played_by(game_modes)),
    new_players_per_second: columns(
      rows((bucket) => {
        const count = players.filter(({ reserved }) => within(reserved, bucket)).length
        return [{ new_player_count: count / bucket.seconds, ts: bucket.from }]
      }),
    ),
    new_lobbies_per_second: columns(
      rows((bucket) => {
        const count = lobbies.filter(({ created }) => within(created, bucket)).length
        return [{ new_lobby_count: count / bucket.seconds, ts: bucket.from }]
      }),
    ),
    destroyed_lobbies_by_failure: columns(
      rows((bucket) =>
        [false, true].map((failed) => ({
          destroyed_lobby_count: stoppedIn(bucket).filter((lobby) => lobby.failed === failed).length,
          failed,
          ts: bucket.from,
        })),
      ),
    ),
    destroyed_lobbies_by_exit_code: columns(
      rows((bucket) =>
        exit_codes.map((exit_code) => ({
          destroyed_lobby_count: stoppedIn(bucket).filter((lobby) => lobby.exit_code === exit_code).length,
          exit_code,
          ts: bucket.from,
        })),
      ),
    ),
    failed_lobbies: columns(
      rows((bucket) => [
        { destroyed_lobby_count: stoppedIn(bucket).filter(({ failed }) => failed).length, ts: bucket.from },
      ]),
    ),
    lobby_ready_time: columns(
      rows((bucket) => {
        const values = lobbies
          .filter(({ ready }) => within(ready, bucket))
          .map(({ created, ready }) => ready! - created)
        return values.length === 0 ? [] : [{ ready_duration: Math.round(mean(values)), ts: bucket.from }]
      }),
    ),
  }
}

/** Without records there are no columns. */
function columns(records: readonly Record<string, unknown>[]): Record<string, unknown[]> {
  const names = Object.keys(records[0] ?? {})
  return Object.fromEntries(names.map((name) => [name, records.map((record) => record[name])]))
}
