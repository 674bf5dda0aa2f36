// Listens to the notifications of the matchmaker for the runner of a node. A runner of a Docker Swarm has a node for each
// engine, and engines come and go.
import type { Context } from '../context.ts'
import { channelOf, type NodeTopic } from '../database/lobby-channels.ts'

type Handlers = Readonly<Record<NodeTopic, (payload: string) => void>>

export class NodeChannels {
  readonly #listener: Context['listener']
  readonly #handlers: Handlers
  /** By node id. Null: lobbies without a node. */
  readonly #unsubscribes = new Map<string | null, () => void>()

  constructor({ listener }: Pick<Context, 'listener'>, handlers: Handlers) {
    this.#listener = listener
    this.#handlers = handlers
    this.#add(null)
  }

  /** Listens for these nodes from now on, and for no others. */
  follow(node_ids: readonly string[]): void {
    for (const node_id of node_ids) if (!this.#unsubscribes.has(node_id)) this.#add(node_id)
    for (const node_id of this.#unsubscribes.keys()) {
      if (node_id !== null && !node_ids.includes(node_id)) this.#remove(node_id)
    }
  }

  close(): void {
    for (const node_id of this.#unsubscribes.keys()) this.#remove(node_id)
  }

  #add(node_id: string | null): void {
    const on = (topic: NodeTopic) => this.#listener.on(channelOf(topic, node_id), this.#handlers[topic])
    const unsubscribes = [on('lobbies'), on('lobby_ready')]
    this.#unsubscribes.set(node_id, () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
    })
  }

  #remove(node_id: string | null): void {
    this.#unsubscribes.get(node_id)?.()
    this.#unsubscribes.delete(node_id)
  }
}
