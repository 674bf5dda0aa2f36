// The lobby of `muster dev` as the protocol of its server sees it. One object for each start of the server.
import { ApiError, type ProtocolName } from '@musterhost/contract'
import { protocolTitle } from '@musterhost/contract/protocol-words'
import {
  LobbyError,
  type LobbyFacts,
  type LobbyView,
  type ProtocolLobby,
  type ProtocolReport,
} from '@musterhost/protocols/lobby'
import type { DevSeats } from '../edge/seats.ts'
import type { DevLobby } from '../lobby.ts'

/** `stop`: ends the server. */
export type ProtocolSurroundings = {
  lobby: DevLobby
  seats: DevSeats
  name: ProtocolName
  end_unhealthy: boolean
  stop: () => void
  event: (text: string) => void
  now: () => number
}

export class DevProtocolLobby implements ProtocolLobby {
  readonly facts: LobbyFacts
  view: LobbyView
  readonly remembered = null
  readonly #around: ProtocolSurroundings
  readonly #listeners = new Set<() => void>()
  readonly #forgets: readonly (() => void)[]
  #state: string | null = null

  constructor(facts: LobbyFacts, around: ProtocolSurroundings) {
    this.facts = facts
    this.#around = around
    this.view = this.#seen()
    this.#forgets = [around.lobby, around.seats].map((one) => one.onChange(() => this.#changed()))
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async ready(): Promise<void> {
    this.#around.lobby.ready()
  }

  async setClosed(is_closed: boolean): Promise<void> {
    this.#around.lobby.setClosed(is_closed)
  }

  async setState(state: unknown): Promise<void> {
    this.#around.lobby.setState(JSON.stringify(state) ?? 'null')
  }

  /** Find of `muster dev` gives the one lobby, which has no tags. */
  async setTags(): Promise<void> {}

  /** The lobby of `muster dev` does not end because it is empty. */
  async keep(): Promise<void> {}

  /** The endpoint lives as long as the server. */
  remember(): void {}

  async connected(player_token: string): Promise<void> {
    const { seats } = this.#around
    if (!seats.are_checked) refusing(() => seats.connected(player_token))
  }

  async disconnected(player_token: string): Promise<void> {
    const { seats } = this.#around
    if (!seats.are_checked) refusing(() => seats.disconnected(player_token))
  }

  async setPlayers(player_ids: readonly string[]): Promise<{ unknown: string[] }> {
    const { seats } = this.#around
    return { unknown: seats.are_checked ? [] : seats.setPlayers(player_ids) }
  }

  async stop(): Promise<void> {
    const { lobby, seats, stop } = this.#around
    lobby.onServerStop()
    seats.endAll()
    stop()
  }

  /** Prints a new state. Reports that repeat it are not shown. */
  report({ state, is_healthy }: ProtocolReport): void {
    const shown = is_healthy === false ? `${state}, not healthy` : state
    if (shown === this.#state) return
    this.#state = shown
    this.#around.event(`${protocolTitle(this.#around.name)}: ${shown}`)
  }

  unhealthy(reason: string): void {
    const { end_unhealthy, event } = this.#around
    event(`${protocolTitle(this.#around.name)}: the server is not healthy: ${reason}`)
    if (!end_unhealthy) return
    event('the lobby ends, because protocol_options has end_unhealthy')
    void this.stop()
  }

  now(): number {
    return this.#around.now()
  }

  log(line: string): void {
    this.#around.event(line)
  }

  close(): void {
    for (const forget of this.#forgets) forget()
    this.#listeners.clear()
  }

  #seen(): LobbyView {
    const { lobby, seats } = this.#around
    return { seats: seats.list(), is_closed: lobby.is_closed, is_draining: false }
  }

  #changed(): void {
    this.view = this.#seen()
    for (const listener of [...this.#listeners]) listener()
  }
}

function refusing(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (error instanceof ApiError) throw new LobbyError(error.code, error.message)
    throw error
  }
}
