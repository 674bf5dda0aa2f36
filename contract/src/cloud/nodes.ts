// The nodes of the platform: the machines and the roles that each runs. Runners of several nodes share the lobbies of a region.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Bytes, Empty, object, Timestamp } from '../records.ts'

/** Nodes of one response. */
export const NODES_MAX = 1000
/** Characters of a node's name. The name of a node without MUSTER_NODE has a path in it. */
const NAME_LENGTH_MAX = 4200
/** Until the deadline of a drain: 30 days. */
const DEADLINE_SECONDS_MAX = 2_592_000

/** Nodes of one response about use. */
export const NODE_USE_NODES_MAX = 100
/** What machines used is kept for a week. */
const NODE_USE_HOURS_MAX = 168
export const NODE_USE_HOURS_DEFAULT = 24

const NodeId = Type.String({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: 'Name of the node: `MUSTER_NODE`, or host name and data folder. Example: `fra-2`.',
})
const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const PlatformNode = object(
  {
    node_id: NodeId,
    state: Type.Enum(['open', 'away', 'no_manager', 'not_available', 'draining', 'drained', 'removed'], {
      description: [
        '`open`: it reports. `away`: its reports are missing.',
        '`no_manager`: it is a machine of a Docker Swarm, and no manager takes requests. Its lobbies continue, and none starts.',
        '`not_available`: its Swarm starts nothing on it: it is paused or drained there, or missed.',
        '`draining`: it gets no lobbies, and some still run. `drained`: none runs any more.',
        '`removed`: an administrator removed it, and it still reports or has lobbies.',
      ].join(' '),
    }),
    roles: Type.Array(Type.String(), { description: 'Roles that report from it. Example: `runner`.' }),
    regions: Type.Array(Type.String(), { description: 'Regions whose lobbies its runner runs.' }),
    version: Type.Optional(Type.String({ description: 'Version of its runner. Absent without a runner.' })),
    lobby_count: Count('Lobbies that it runs.'),
    player_count: Count('Players with a seat in them.'),
    cpu_cores: Type.Number({ minimum: 0, description: 'Cores that these lobbies may use together.' }),
    cpu_cores_max: Type.Optional(
      Type.Number({ minimum: 0, description: 'Cores for lobbies. Absent without a limit.' }),
    ),
    memory_mb: Type.Number({ minimum: 0, description: 'Memory of these lobbies in MiB.' }),
    memory_mb_max: Type.Optional(
      Type.Number({ minimum: 0, description: 'Memory for lobbies in MiB. Absent without a limit.' }),
    ),
    disk_free_bytes: Type.Optional(Bytes('Free disk space. Absent without a runner.')),
    link: Type.Optional(
      object(
        {
          round_trip_ms: Type.Optional(
            Type.Number({ minimum: 0, description: 'Round trip over its link in milliseconds. Absent at first.' }),
          ),
          clock_offset_ms: Type.Optional(
            Type.Number({ description: 'Its clock minus that of the platform, in milliseconds. Absent at first.' }),
          ),
          certificate_expire_ts: Timestamp('When its certificate ends. The node renews it long before.'),
        },
        'The link of a node that has joined by an invitation. Absent for other nodes.',
      ),
    ),
    seen_ts: Type.Optional(Timestamp('When one of its roles last reported. Absent when none has.')),
    drain: Type.Optional(
      object(
        {
          begin_ts: Timestamp('When the drain began.'),
          at_match_end: Type.Boolean({ description: 'Whether its lobbies take no new players.' }),
          deadline_ts: Type.Optional(Timestamp('When the remaining lobbies end. Absent without a deadline.')),
        },
        'The drain of the node. Absent when it is not drained.',
      ),
    ),
  },
  'A node of the platform.',
)

const defaults = { service: 'api', auth: ['admin'], rate_limit: 'cloud', method: 'POST' } as const
const node_response = object({ node: PlatformNode })

export const listNodes = operation({
  ...defaults,
  id: 'nodes.list',
  method: 'GET',
  path: '/nodes',
  summary: 'Lists the nodes of the platform with their use.',
  response: object({
    nodes: Type.Array(PlatformNode, { description: `The nodes, by name. At most ${NODES_MAX}.` }),
    is_complete: Type.Boolean({
      description: 'Whether these are all nodes. False: there are more than one response lists.',
    }),
  }),
})

export const getNodeUse = operation({
  ...defaults,
  id: 'nodes.getUse',
  method: 'GET',
  path: '/nodes/use',
  summary: 'Gets what the machines of nodes with a runner used over time, all their programs together.',
  query: object({
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: NODE_USE_HOURS_MAX,
        description: `Hours until now. Default: ${NODE_USE_HOURS_DEFAULT}.`,
      }),
    ),
  }),
  response: object({
    nodes: Type.Array(
      object(
        {
          node_id: NodeId,
          cpu_cores_max: Count('Cores of the machine.'),
          memory_mb_max: Count('Memory of the machine in MiB.'),
          cpu_cores: Type.Array(Type.Number({ minimum: 0 }), { description: 'Used cores, a mean of each bucket.' }),
          memory_mb: Type.Array(Type.Integer({ minimum: 0 }), {
            description: 'Used memory in MiB, a mean of each bucket.',
          }),
          ts: Type.Array(Type.Integer(), {
            description: 'Starts of the buckets in milliseconds since 1970. Buckets without a report are left out.',
          }),
        },
        'What one machine used.',
      ),
      { description: `The nodes, by name. At most ${NODE_USE_NODES_MAX}.` },
    ),
    is_complete: Type.Boolean({
      description: 'Whether these are all nodes. False: there are more than one response lists.',
    }),
  }),
})

export const drainNode = operation({
  ...defaults,
  id: 'nodes.drain',
  path: '/nodes/drain',
  summary:
    'Begins to drain a node: it gets no new lobbies, and empty ones end. No player is disconnected before the deadline.',
  body: object({
    node_id: NodeId,
    at_match_end: Type.Optional(
      Type.Boolean({
        description: 'Whether its lobbies take no new players. They end when they are empty. Default: false.',
      }),
    ),
    deadline_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: DEADLINE_SECONDS_MAX,
        description: 'Seconds until all remaining lobbies end. Default: they end when they are empty.',
      }),
    ),
  }),
  response: node_response,
  errors: ['NODE_NOT_FOUND'],
})

export const cancelNodeDrain = operation({
  ...defaults,
  id: 'nodes.cancelDrain',
  path: '/nodes/cancel-drain',
  summary:
    'Cancels the drain of a node, or the removal of one that has not joined by an invitation: it gets lobbies again.',
  body: object({ node_id: NodeId }),
  response: node_response,
  errors: ['NODE_NOT_FOUND', 'NODE_REMOVED'],
})

export const removeNode = operation({
  ...defaults,
  id: 'nodes.remove',
  confirm: true,
  path: '/nodes/remove',
  summary:
    'Removes a node, and revokes the certificate of one that has joined. It is refused while the node runs lobbies, unless `force` is set.',
  body: object({
    node_id: NodeId,
    force: Type.Optional(
      Type.Boolean({
        description: 'Whether lobbies that still run end, with the reason `node_removed`. Default: false.',
      }),
    ),
  }),
  response: Empty,
  errors: ['NODE_NOT_FOUND', 'NODE_HAS_LOBBIES'],
})
