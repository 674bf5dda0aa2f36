// The NOTIFY channels about lobbies that the matchmaker sends and runners and edges listen to. A lobby that has a node
// wakes the runner of this node alone: otherwise each start would wake every runner of the platform.
import { createHash } from 'node:crypto'

/** A lobby with public TCP or UDP ports has started or stopped. The edges open and close these ports. */
export const LOBBY_PORTS_CHANNEL = 'lobby_ports'

/** `lobbies`: a lobby has started or stopped. `lobby_ready`: the lobby of the payload is ready. */
export type NodeTopic = 'lobbies' | 'lobby_ready'

const HASH_CHARACTERS = 32

/** `node_id`: null for a lobby that any runner of its region may take. A node's name may be any text, so it is hashed. */
export function channelOf(topic: NodeTopic, node_id: string | null): string {
  if (node_id === null) return topic
  return `${topic}_${createHash('sha256').update(node_id).digest('hex').slice(0, HASH_CHARACTERS)}`
}
