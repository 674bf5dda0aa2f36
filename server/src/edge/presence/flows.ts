// The spliced connections to lobbies: raw TCP, and WebSockets after their handshake. A planned restart of the edge hands them
// over to the next edge (hand-over/), so each has the facts by which another process continues to count and limit it.
import type { Socket } from 'node:net'
import type { PlayerId } from '@musterhost/contract/edge'
import { type Splice, spliceHeld } from '../splice.ts'
import { breakOff } from '../tls/tls.ts'
import type { ConnectionLimits, ConnectionProtocol } from './connection-limits.ts'
import type { LobbyConnections } from './lobby-connections.ts'
import type { Players } from './players.ts'

/** `is_by_address`: the client's address admitted the player, and no token. */
export type FlowPlayer = PlayerId & { address: string | null; is_by_address: boolean }

/** `peer`: by which the edge's connections are limited. `number`: of the raw port; null: HTTP. `port_name`: of an HTTP port. */
export type FlowFacts = {
  kind: ConnectionProtocol
  peer: string
  client_key: string
  number: number | null
  port_name?: string
  lobby_id: string
  /** Null: the lobby's server checks the seats. */
  player: FlowPlayer | null
}

export type Flow = { readonly facts: FlowFacts; readonly splice: Splice }

export type FlowsOptions = {
  connection_limits: ConnectionLimits
  lobby_connections: LobbyConnections
  /** Limits of raw ports (streams/port-connection-limits.ts). `enter` returns a function to call at the end, or null. */
  port_limits: { enter: (number: number, client_key: string) => (() => void) | null }
  /** Counts the connections that an address admitted (contract/src/edge/stream-admission.ts). */
  admission: { adopt: (number: number, player: PlayerId) => () => void }
  players: Players
}

export class Flows {
  readonly #options: FlowsOptions
  readonly #open = new Set<Flow>()
  /** Flows that a token admitted, by player and port. */
  readonly #by_player = new Map<string, Set<Flow>>()
  /** Links of joined nodes. */
  readonly #links = new Set<Socket>()

  constructor(options: FlowsOptions) {
    this.#options = options
  }

  get open(): ReadonlySet<Flow> {
    return this.#open
  }

  get link_count(): number {
    return this.#links.size
  }

  addLink(client: Socket): void {
    this.#links.add(client)
    client.once('close', () => this.#links.delete(client))
  }

  add(splice: Splice, facts: FlowFacts): Flow {
    const flow = { splice, facts }
    this.#open.add(flow)
    splice.client.once('close', () => this.#open.delete(flow))
    const { player } = facts
    if (player !== null && !player.is_by_address) this.#addOfPlayer(keyOf(player.player_id, facts), flow)
    return flow
  }

  /**
   * Ends the player's connections to the port, for one that takes their place. Resolves when they are closed towards the
   * lobby's server. The client may have lost the network without closing them.
   */
  async endOf(player_id: string, port: Pick<FlowFacts, 'number' | 'port_name'>): Promise<void> {
    const before = this.#by_player.get(keyOf(player_id, port)) ?? []
    await Promise.all([...before].map(({ splice }) => splice.end()))
  }

  #addOfPlayer(key: string, flow: Flow): void {
    const flows = this.#by_player.get(key) ?? new Set()
    this.#by_player.set(key, flows.add(flow))
    flow.splice.client.once('close', () => {
      flows.delete(flow)
      if (flows.size === 0 && this.#by_player.get(key) === flows) this.#by_player.delete(key)
    })
  }

  close(): void {
    for (const { splice } of this.#open) splice.client.destroy()
  }

  /**
   * Joins two sockets that another edge has too. They read nothing before `splice.resume`. Returns null, and closes the
   * descriptors of this process, when there is no place for the connection. The other edge keeps it then.
   */
  adopt(client: Socket, upstream: Socket, facts: FlowFacts): Flow | null {
    const { connection_limits, lobby_connections, port_limits, players, admission } = this.#options
    const { kind, peer, client_key, number, lobby_id, player } = facts
    for (const socket of [client, upstream]) socket.on('error', () => {})
    const leavePort = number === null ? () => {} : port_limits.enter(number, client_key)
    if (leavePort === null || connection_limits.admit(kind, client, { peer, is_shared: true }) === null) {
      leavePort?.()
      client.destroy()
      upstream.destroy()
      return null
    }
    client.once('close', leavePort)
    lobby_connections.enter(lobby_id, client)
    client.once('close', () => lobby_connections.leave(lobby_id, client))
    if (player !== null) client.once('close', players.adopt(player, () => breakOff(client)).leave)
    if (player?.is_by_address && number !== null) client.once('close', admission.adopt(number, player))
    return this.add(spliceHeld(client, upstream), facts)
  }
}

function keyOf(player_id: string, { number, port_name }: Pick<FlowFacts, 'number' | 'port_name'>): string {
  return `${player_id} ${number ?? port_name}`
}
