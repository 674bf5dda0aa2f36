// Lobbies and players by namespace, region and game mode, counted when the operator asks. The books are read in pieces,
// so that no find waits for it. The result is bounded: small counts are added up.
import { setImmediate as pause } from 'node:timers/promises'
import type { SetValue } from '../../observe/metrics.ts'
import type { Books } from '../shards/books.ts'

/** Counts that are reported separately: those with the most players, then the most lobbies. */
const COUNTS_MAX = 200
/** Lobbies and players that are counted before other work gets a turn. */
const STEP_MAX = 2_000

const LOBBY_STATES = ['starting', 'ready', 'closed', 'stalled'] as const
const PLAYER_STATES = ['reserved', 'connected'] as const

/** Counts of one game mode in one region of a namespace. */
export type LobbyCount = {
  namespace_id: string
  region: string
  game_mode: string
  lobbies: Record<(typeof LOBBY_STATES)[number], number>
  players: Record<(typeof PLAYER_STATES)[number], number>
}

/** Stands for namespace and game mode where counts are added up. */
const OTHERS = 'other'

export async function countLobbies(books: Pick<Books, 'namespaceIds' | 'book'>): Promise<LobbyCount[]> {
  const counts = new Map<string, LobbyCount>()
  let steps = 0
  for (const namespace_id of books.namespaceIds()) {
    for (const lobby of books.book(namespace_id)?.lobbies.values() ?? []) {
      steps += 1 + lobby.players.size
      if (steps > STEP_MAX) {
        steps = 0
        await pause()
      }
      if (lobby.stop_ms !== null) continue
      const { lobbies, players } = countOf(counts, { namespace_id, ...lobby })
      if (lobby.is_stalled) lobbies.stalled++
      else if (lobby.ready_ms === null) lobbies.starting++
      else if (lobby.is_closed) lobbies.closed++
      else lobbies.ready++
      for (const player of lobby.players.values()) {
        if (player.remove_ms !== null) continue
        if (player.connect_ms === null) players.reserved++
        else players.connected++
      }
    }
  }
  return bounded([...counts.values()])
}

export function reportLobbies(counts: readonly LobbyCount[], report: SetValue): void {
  reportEach(counts, report, ({ lobbies }) => lobbies)
}

export function reportPlayers(counts: readonly LobbyCount[], report: SetValue): void {
  reportEach(counts, report, ({ players }) => players)
}

function reportEach(
  counts: readonly LobbyCount[],
  report: SetValue,
  numbersOf: (count: LobbyCount) => Record<string, number>,
): void {
  for (const count of counts) {
    const { namespace_id, region, game_mode } = count
    for (const [state, value] of Object.entries(numbersOf(count))) report(value, namespace_id, region, game_mode, state)
  }
}

type Key = Pick<LobbyCount, 'namespace_id' | 'region' | 'game_mode'>

function countOf(counts: Map<string, LobbyCount>, { namespace_id, region, game_mode }: Key): LobbyCount {
  const key = `${namespace_id} ${region} ${game_mode}`
  let count = counts.get(key)
  if (count === undefined) {
    const zero = { lobbies: { starting: 0, ready: 0, closed: 0, stalled: 0 }, players: { reserved: 0, connected: 0 } }
    count = { namespace_id, region, game_mode, ...zero }
    counts.set(key, count)
  }
  return count
}

/** Counts beyond the bound are added up by region. */
function bounded(counts: LobbyCount[]): LobbyCount[] {
  const size = ({ players, lobbies }: LobbyCount): number =>
    (players.reserved + players.connected) * 1_000 + LOBBY_STATES.reduce((sum, state) => sum + lobbies[state], 0)
  counts.sort((a, b) => size(b) - size(a))
  const others = new Map<string, LobbyCount>()
  for (const { region, lobbies, players } of counts.slice(COUNTS_MAX)) {
    const sum = countOf(others, { namespace_id: OTHERS, region, game_mode: OTHERS })
    for (const state of LOBBY_STATES) sum.lobbies[state] += lobbies[state]
    for (const state of PLAYER_STATES) sum.players[state] += players[state]
  }
  return [...counts.slice(0, COUNTS_MAX), ...others.values()]
}
