// The connections that an edge gives to its successor: flows to lobbies, and connections that wait for a request. Their
// descriptors are sent ahead, while this edge carries them on. `hold` then stops reading all of them at once. What cannot be
// held then, has ended, or has no place at the successor, stays here.
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { handleOf } from '../handles.ts'
import type { IdleConnection } from '../http/connections.ts'
import type { Flow, Flows } from '../presence/flows.ts'
import type { HandleChannel } from './channel.ts'
import { type FromEdge, monotonicMs } from './messages.ts'

/** Handles sent between two turns of the event loop: datagrams are forwarded meanwhile. */
const SENT_AT_ONCE_MAX = 32
/** Ids in one message. */
const IDS_MAX = 1_000

/** What was held for the successor: it continues there, or here. */
export type HeldTraffic = { release: () => void; resume: () => void }

type Given = { kind: 'flow'; flow: Flow } | { kind: 'idle'; connection: IdleConnection }

export class GivenConnections {
  readonly #channel: HandleChannel
  readonly #flows: Flows
  readonly #idle: () => IdleConnection[]
  /** By id. */
  readonly #given = new Map<number, Given>()
  #last_id: number
  #is_over = false

  /** `first_id`: no other connection of the channel has one from here on. */
  constructor(
    channel: HandleChannel,
    first_id: number,
    { flows, idle }: { flows: Flows; idle: () => IdleConnection[] },
  ) {
    this.#channel = channel
    this.#last_id = first_id - 1
    this.#flows = flows
    this.#idle = idle
  }

  get next_id(): number {
    return this.#last_id + 1
  }

  /** Sends what may be held later. */
  async send(): Promise<void> {
    let count = 0
    for (const flow of [...this.#flows.open]) {
      if (flow.splice.is_movable) await this.#sendFlow(flow)
      if (++count % SENT_AT_ONCE_MAX === 0) await nextTurn()
    }
    for (const connection of this.#idle()) {
      await this.#sendIdle(connection)
      if (++count % SENT_AT_ONCE_MAX === 0) await nextTurn()
    }
  }

  /** Keeps connections that the successor has refused: it had no room for them, and has closed its descriptors. */
  keep(ids: readonly number[]): void {
    for (const id of ids) this.#given.delete(id)
  }

  /**
   * Stops reading everything that was sent, and reports to the successor what it does not get. Returns what is held, and when the
   * pause began; null: nothing is held.
   */
  async hold(): Promise<{ held: HeldTraffic[]; begin_ms: number | null }> {
    const begin_ms = monotonicMs()
    const given = [...this.#given]
    const are_held = await Promise.all(
      given.map(([, one]) => (one.kind === 'flow' ? one.flow.splice.hold() : one.connection.hold())),
    )
    // A connection may have ended while others were still being written.
    const held = given.filter(([id], index) => are_held[index] && this.#given.has(id))
    const held_ids = new Set(held.map(([id]) => id))
    await this.#without(given.map(([id]) => id).filter((id) => !held_ids.has(id)))
    this.#is_over = true
    return {
      held: held.map(([, one]) => (one.kind === 'flow' ? one.flow.splice : one.connection)),
      begin_ms: held.length > 0 ? begin_ms : null,
    }
  }

  /** Nothing is reported to the successor any more. */
  close(): void {
    this.#is_over = true
  }

  async #sendFlow(flow: Flow): Promise<void> {
    const { client, upstream } = flow.splice
    const [client_handle, upstream_handle] = [handleOf(client), handleOf(upstream)]
    if (client_handle === null || upstream_handle === null) return
    const id = this.#add({ kind: 'flow', flow }, client)
    const sent = this.#channel.send({ kind: 'flow', id, facts: flow.facts } satisfies FromEdge, client_handle)
    await Promise.all([sent, this.#channel.send({ kind: 'upstream' } satisfies FromEdge, upstream_handle)])
  }

  async #sendIdle(connection: IdleConnection): Promise<void> {
    const { socket, peer, lobby_id } = connection
    const handle = handleOf(socket)
    if (handle === null) return
    const id = this.#add({ kind: 'idle', connection }, socket)
    await this.#channel.send({ kind: 'idle', id, peer, lobby_id } satisfies FromEdge, handle)
  }

  /** The successor's descriptor would keep a connection open that has ended here, so it is notified at once. */
  #add(given: Given, socket: Socket): number {
    const id = ++this.#last_id
    this.#given.set(id, given)
    socket.once('close', () => {
      if (this.#is_over || !this.#given.delete(id)) return
      // A successor that is gone has no descriptor any more.
      this.#without([id]).catch(() => {})
    })
    return id
  }

  async #without(ids: readonly number[]): Promise<void> {
    for (let from = 0; from < ids.length; from += IDS_MAX) {
      await this.#channel.send({ kind: 'without', ids: ids.slice(from, from + IDS_MAX) } satisfies FromEdge)
    }
  }
}
