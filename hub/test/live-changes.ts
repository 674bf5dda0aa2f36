// Random changes of the lobbies of a game: players find seats, connect and leave; lobbies close, open, stop and are killed;
// versions are deployed. The same seed gives the same steps; which of them meet is up to the machine.
import {
  ApiError,
  deleteMatchmakerLobby,
  playerConnected,
  playerDisconnected,
  setLobbyClosed,
} from '@musterhost/contract'
import fc from 'fast-check'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { processesOf } from '../../server/test/supervisor/started.ts'
import type { Platform, TestGame } from '../../server/test/support/platform.ts'
import type { Seat } from '../../server/test/support/platform-verbs.ts'

/** Steps by their name, with how often each is drawn. */
const WEIGHTS = {
  ...{ find: 12, duel: 8, connect: 8, leave: 3 },
  ...{ close: 2, reopen: 1, stop: 1, kill: 2, deploy: 1 },
}
export type Change = keyof typeof WEIGHTS
export const CHANGES = Object.keys(WEIGHTS) as Change[]
/** For platforms without a runner, whose lobbies have no process. */
export const CHANGES_WITHOUT_PROCESSES = CHANGES.filter((change) => change !== 'kill')

export const LIVE_MODES = {
  default: { max_players: 3, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS },
  duel: { max_players: 2, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS },
}
export const LIVE_LIMITS = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }

/** Each has a process, and the page draws every row of a table of this length. */
const LOBBIES_MAX = 40
const STEPS_AT_ONCE = 4
const STEPS_MAX = 100_000
const PICKS = 1_000

type Step = readonly [change: Change, pick: number]

export class LiveChanges {
  readonly counts = new Map<Change, number>()
  /** By code, the requests that the platform refused. */
  readonly refusals = new Map<string, number>()
  readonly killed_lobby_ids: string[] = []
  readonly #platform: Platform
  readonly #game: TestGame
  readonly #steps: Iterator<Step>
  #seats: Seat[] = []
  /** Those that this object has neither stopped nor killed. */
  readonly #lobby_ids = new Set<string>()

  /** The first steps take each change once. */
  constructor(platform: Platform, game: TestGame, changes: readonly Change[], seed: number) {
    this.#platform = platform
    this.#game = game
    const weighted = changes.flatMap((change) => Array<Change>(WEIGHTS[change]).fill(change))
    const step = fc.noBias(fc.tuple(fc.constantFrom(...weighted), fc.nat(PICKS)))
    const drawn = fc.sample(step, { numRuns: STEPS_MAX, seed })
    this.#steps = [...changes.flatMap(eachWithSeat), ...drawn].values()
  }

  /** Takes the first steps, one after the other. */
  async takeEach(changes: readonly Change[]): Promise<void> {
    for (const _ of changes.flatMap(eachWithSeat)) await this.#takeNext()
  }

  async run(duration_ms: number): Promise<void> {
    const end_ms = performance.now() + duration_ms
    await Promise.all(
      Array.from({ length: STEPS_AT_ONCE }, async () => {
        while (performance.now() < end_ms && (await this.#takeNext()));
      }),
    )
  }

  async #takeNext(): Promise<boolean> {
    const { value: step, done } = this.#steps.next()
    if (done === true) return false
    const [drawn, pick] = step
    const is_full = this.#lobby_ids.size >= LOBBIES_MAX && (drawn === 'find' || drawn === 'duel')
    try {
      await this.#take(is_full ? 'stop' : drawn, pick)
    } catch (error) {
      // Another step has stopped the lobby, or removed the player, meanwhile.
      if (!(error instanceof ApiError)) throw error
      addOne(this.refusals, error.code)
    }
    return true
  }

  async #take(change: Change, pick: number): Promise<void> {
    const seat = this.#seats[pick % Math.max(1, this.#seats.length)]
    const lobby_id = [...this.#lobby_ids][pick % Math.max(1, this.#lobby_ids.size)]
    if (change === 'find' || change === 'duel') await this.#find(change === 'find' ? 'default' : 'duel')
    else if (change === 'deploy') await this.#platform.deploy(this.#game, LIVE_MODES)
    else if (change === 'connect' || change === 'leave') {
      if (seat === undefined) return
      await this.#takeSeat(change, seat)
    } else {
      if (lobby_id === undefined) return
      await this.#takeLobby(change, lobby_id)
    }
    addOne(this.counts, change)
  }

  async #find(game_mode: string): Promise<void> {
    const seat = await this.#game.find({ game_modes: [game_mode] })
    this.#seats.push(seat)
    this.#lobby_ids.add(seat.lobby.lobby_id)
  }

  async #takeSeat(change: 'connect' | 'leave', seat: Seat): Promise<void> {
    const server = this.#platform.serverOf(this.#game, seat.lobby.lobby_id)
    const body = { player_token: seat.player.token }
    if (change === 'connect') await server.call(playerConnected, { body })
    else {
      this.#seats = this.#seats.filter((one) => one !== seat)
      await server.call(playerDisconnected, { body })
    }
  }

  async #takeLobby(change: 'close' | 'reopen' | 'stop' | 'kill', lobby_id: string): Promise<void> {
    if (change === 'close' || change === 'reopen') {
      const server = this.#platform.serverOf(this.#game, lobby_id)
      await server.call(setLobbyClosed, { body: { is_closed: change === 'close' } })
      return
    }
    this.#lobby_ids.delete(lobby_id)
    this.#seats = this.#seats.filter(({ lobby }) => lobby.lobby_id !== lobby_id)
    const params = { game_id: this.#game.game_id, lobby_id }
    if (change === 'stop') await this.#platform.client.call(deleteMatchmakerLobby, { params })
    else this.#kill(lobby_id)
  }

  #kill(lobby_id: string): void {
    const servers = processesOf(lobby_id).filter(({ command }) => command.split(' ', 1)[0]!.endsWith('node'))
    for (const { pid } of servers) process.kill(pid, 'SIGKILL')
    if (servers.length > 0) this.killed_lobby_ids.push(lobby_id)
  }
}

/** Most changes need a seat. */
const eachWithSeat = (change: Change): Step[] => [
  ['find', 0],
  [change, 0],
]

function addOne<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
