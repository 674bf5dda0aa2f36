// All channels of NOTIFY, by which one process wakes others. A notification only shortens a wait: every listener also reads the
// table of its subject from time to time. The comment of a channel says what its payload is.
import { createHash } from 'node:crypto'

export const CHANNELS = {
  /** The host that has another certificate. */
  certificates: 'certificates',
  /** A host that a client asked for, and that has no certificate yet. */
  certificate_wishes: 'certificate_wishes',
  /** The key of an object whose bytes changed; or empty. */
  damaged_objects: 'damaged_objects',
  /** The id of a link by which a device signs in. */
  device_links: 'device_links',
  /** The id of the edge whose players were admitted or refused. */
  edge_admissions: 'edge_admissions',
  /** Empty: connections of players at an edge began or ended. */
  edge_players: 'edge_players',
  /** Empty: an edge has opened or closed ports. */
  edge_ports: 'edge_ports',
  /** The id of a namespace with new explanations. */
  explanations: 'explanations',
  /** Empty: a reader waits for explanations that are still in memory. */
  explanations_wanted: 'explanations_wanted',
  /** The numbers of the shards with new rows, with commas between; or empty. */
  journal: 'journal',
  /** A namespace and a key whose entry changed (kv/entries.ts). */
  kv: 'kv',
  /** Empty: a lobby with public TCP or UDP ports has started or stopped. */
  lobby_ports: 'lobby_ports',
  /** The id of a lobby whose run has changed. */
  lobby_runs: 'lobby_runs',
  /** The id of a question about the log of a lobby on another machine. */
  log_questions: 'log_questions',
  /** The id of a question that has its answer. */
  log_answers: 'log_answers',
  /** The id of a namespace whose settings or version changed; or empty. */
  namespaces: 'namespaces',
  /** Empty: a target of notices was made, changed or deleted, or a notice is to be sent again. */
  notices: 'notices',
  /** The id of a node that was drained, opened or removed; or empty. */
  nodes: 'nodes',
  /** Empty: a reader waits for rays that are still in memory. */
  rays: 'rays',
  /** Empty: tokens were revoked. */
  revoked_tokens: 'revoked_tokens',
  /** Empty: a schedule was made, changed, deleted or run. */
  schedules: 'schedules',
  /** Empty: shards have moved between matchmakers. */
  shard_leases: 'shard_leases',
  /** Empty: what a status page shows has changed, or whether it is served. */
  status_pages: 'status_pages',
} as const

/** `lobbies`: a lobby has started or stopped. `lobby_ready`: the lobby of the payload is ready. */
export type NodeTopic = 'lobbies' | 'lobby_ready'

const HASH_CHARACTERS = 32

/**
 * The channel by which the matchmaker wakes the runner of one node: otherwise each start would wake every runner of the
 * platform. `node_id`: null for a lobby that any runner of its region may take. It may be any text, so it is hashed.
 */
export function channelOf(topic: NodeTopic, node_id: string | null): string {
  if (node_id === null) return topic
  return `${topic}_${createHash('sha256').update(node_id).digest('hex').slice(0, HASH_CHARACTERS)}`
}
