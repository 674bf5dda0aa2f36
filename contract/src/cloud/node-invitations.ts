// Invitations of machines to join the platform as nodes. The text of an invitation is returned once, when it is created.
import Type from 'typebox'
import { Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { IsCut, object, Timestamp } from '../records.ts'

/** Lifetime of an invitation. */
export const NODE_INVITATION_TTL_MS_MAX = 7 * 24 * 60 * 60_000
const TTL_MS_DEFAULT = 15 * 60_000
export const NODE_INVITATION_TTL_MS_DEFAULT = TTL_MS_DEFAULT
/** Invitations of one response. */
export const NODE_INVITATIONS_LISTED_MAX = 200
const NODE_NAME_LENGTH_MAX = 32

const NodeName = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  maxLength: NODE_NAME_LENGTH_MAX,
  description: 'Name of the node: lower-case letters, digits and single hyphens. Example: `attic`.',
})
const NodeRoles = Type.Array(Type.Enum(['runner', 'edge']), {
  minItems: 1,
  uniqueItems: true,
  description:
    'What the node does. `runner`: it runs lobbies. `edge`: it serves sites, the API and lobbies to players, and is trusted with their tokens and the keys of certificates.',
})
const InvitationId = Id('Id of the invitation.')
const RegionName = Type.String({ maxLength: 64, description: 'Region whose lobbies the node runs. Example: `local`.' })

export const NodeInvitation = object(
  {
    invitation_id: InvitationId,
    node_id: NodeName,
    region: RegionName,
    roles: NodeRoles,
    state: Type.Enum(['open', 'used', 'expired', 'revoked'], {
      description:
        '`open`: it is still valid. `used`: a machine has joined with it. `expired` and `revoked`: it is void.',
    }),
    create_ts: Timestamp('When the invitation was created.'),
    expire_ts: Timestamp('Until when the invitation is valid.'),
    use_ts: Type.Optional(Timestamp('When a machine joined with it. Absent while none has.')),
    use_ip: Type.Optional(Type.String({ description: 'Address of the machine that joined. Absent while none has.' })),
  },
  'An invitation, without its text.',
)

const defaults = { service: 'api', auth: ['admin'], rate_limit: 'cloud' } as const
const PATH = '/admin/node-invitations'

export const createNodeInvitation = operation({
  ...defaults,
  id: 'admin.createNodeInvitation',
  method: 'POST',
  path: PATH,
  summary: 'Invites one machine to join the platform as a node.',
  body: object({
    name: Type.Optional(NodeName),
    region: Type.Optional(RegionName),
    roles: Type.Optional(NodeRoles),
    ttl: Type.Optional(
      Type.Integer({
        minimum: 1_000,
        maximum: NODE_INVITATION_TTL_MS_MAX,
        description: 'How long the invitation is valid, in milliseconds. Default: 15 minutes.',
      }),
    ),
  }),
  response: object({
    invitation_id: InvitationId,
    invitation: Type.String({
      description:
        'Text for `muster join`: `mj1.`, the hash of the platform key, and a secret. It is returned only once.',
    }),
    platform_url: Type.String({ description: 'Address of the platform for `muster join`.' }),
    join_command: Type.String({
      description:
        'Command for the new machine, with address and invitation: in a checkout where the platform runs in one, otherwise of the package.',
    }),
    node_id: NodeName,
    region: RegionName,
    roles: NodeRoles,
    expire_ts: Timestamp('Until when the invitation is valid.'),
  }),
  errors: ['NODE_NAME_TAKEN', 'NODE_REGION_UNKNOWN'],
})

export const listNodeInvitations = operation({
  ...defaults,
  id: 'admin.listNodeInvitations',
  method: 'GET',
  path: PATH,
  summary: 'Lists the invitations of nodes, newest first.',
  response: object({
    invitations: Type.Array(NodeInvitation, {
      description: `The newest ${NODE_INVITATIONS_LISTED_MAX} invitations.`,
    }),
    is_cut: IsCut('Older ones cannot be listed.'),
  }),
})

export const revokeNodeInvitation = operation({
  ...defaults,
  id: 'admin.revokeNodeInvitation',
  method: 'DELETE',
  path: `${PATH}/{invitation_id}`,
  summary: 'Revokes an invitation that no machine has used.',
  params: object({ invitation_id: InvitationId }),
  response: object({}),
  errors: ['NODE_INVITATION_NOT_FOUND'],
})
