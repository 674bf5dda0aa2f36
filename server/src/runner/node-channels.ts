// Listens to the notifications of the matchmaker for the runner of some nodes. A runner of a Docker Swarm has a node for each
// engine.
import type { Context } from '../context.ts'
import { channelOf, type NodeTopic } from '../wire/channels.ts'

const TOPICS: readonly NodeTopic[] = ['lobbies', 'lobby_ready']

type Handlers = Readonly<Record<NodeTopic, (payload: string) => void>>

/** Also for lobbies without a node. Returns a function that ends it. */
export function listenForNodes(
  { listener }: Pick<Context, 'listener'>,
  node_ids: readonly string[],
  handlers: Handlers,
): () => void {
  const unsubscribes = [null, ...node_ids].flatMap((node_id) =>
    TOPICS.map((topic) => listener.on(channelOf(topic, node_id), handlers[topic])),
  )
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe()
  }
}
