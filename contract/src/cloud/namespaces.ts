// Namespaces: environments in which a version of a game is played, such as prod and staging. Each has its own players,
// lobbies and limits.
import Type from 'typebox'
import { GameId, NamespaceId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { DisplayName, described, Empty, NameId, object, Timestamp, U32 } from '../records.ts'
import { Draft, ValidationErrors } from './validation.ts'

/** Characters of the display name of a namespace. */
export const NAMESPACE_DISPLAY_NAME_LENGTH_MAX = 128
/** How far in the future a namespace may expire. */
export const NAMESPACE_LIFETIME_MS_MAX = 366 * 24 * 60 * 60_000
/** Characters of the message of a deploy. */
export const DEPLOY_MESSAGE_LENGTH_MAX = 500

const summary = {
  namespace_id: NamespaceId,
  create_ts: Timestamp('When the namespace was created.'),
  display_name: Type.String({ description: 'Name for people. Example: `Production`.' }),
  version_id: described(VersionId, 'Id of the version that is deployed to the namespace.'),
  name_id: Type.String({
    description: 'Short name, unique in the game. It is part of the address of the site. Example: `prod`.',
  }),
  expire_ts: Type.Optional(
    Timestamp('When the platform stops its lobbies and deletes the namespace. Absent when it does not expire.'),
  ),
}

const ExpireTs = Type.Optional(
  Timestamp(
    'When the platform stops the lobbies of the namespace and deletes it: in the future, within 366 days. Default: never.',
  ),
)

export const NamespaceSummary = object(summary, 'A namespace without its config.')

const DomainRecord = object({
  type: Type.Enum(['CNAME', 'TXT'], { description: 'Type of the DNS record.' }),
  name: Type.String({ description: 'Full name of the DNS record, without a trailing dot.' }),
  value: Type.String({
    description: 'Value of the DNS record: the target of a CNAME record, or the text of a TXT record.',
  }),
})

export const CdnDomain = object(
  {
    domain: Type.String({
      description: 'Domain name without protocol, lower case, ASCII. Example: `play.example.com`.',
    }),
    create_ts: Timestamp('When the domain was claimed.'),
    verification_status: Type.Enum(['active', 'pending', 'failed'], {
      description:
        '`active`: the site is served under the domain. `pending`: no DNS record was found yet. `failed`: many checks failed; the claim is still checked for some days.',
    }),
    verification_method: Type.Union(
      [
        object({
          http: object(
            { cname_record: Type.String({ description: 'Target of the CNAME record.' }) },
            'A CNAME record proves the claim.',
          ),
        }),
        object({ invalid: object({}, 'No CNAME record can prove the claim; use the TXT record.') }),
      ],
      {
        description: 'The CNAME record, in the form that older clients read. `verification_records` lists all records.',
      },
    ),
    verification_records: Type.Array(DomainRecord, {
      description:
        'DNS records that prove the claim. Set exactly one of them; a wildcard record does not count. Only the TXT record is listed for the apex of a zone, and when another group has a parent or child of this domain.',
    }),
    verification_errors: Type.Array(Type.String(), {
      description: 'Errors of the last check, one line for each record.',
    }),
    certificate: Type.Optional(
      object(
        {
          expire_ts: Type.Optional(Timestamp('When the certificate expires. Absent until the first one is issued.')),
          error: Type.Optional(
            Type.String({ description: 'Why the last order failed. Absent after an order that succeeded.' }),
          ),
        },
        'Certificate that the platform orders for an active domain. Absent until it is requested, and when a certificate of the platform covers the domain.',
      ),
    ),
  },
  'A custom domain of a namespace.',
)

export const CdnConfig = object(
  {
    enable_domain_public_auth: Type.Boolean({
      description: 'Whether pages on the host of the namespace may use the matchmaker without a token.',
    }),
    domains: Type.Array(CdnDomain, { description: 'Custom domains of the site.' }),
    auth_type: Type.Enum(['none', 'basic'], {
      description: '`none`: the site is public. `basic`: visitors need the name and password of a user of the site.',
    }),
    auth_user_list: Type.Array(object({ user: Type.String({ description: 'Name of the user.' }) }), {
      description: 'Users of the site.',
    }),
  },
  'How the site of a namespace is served.',
)

const client_limits = {
  max_players_per_client: U32('Players that one client may have at a time. Default 8; 0 blocks all clients.'),
  max_players_per_client_vpn: U32('The same limit for addresses of VPNs. Default 4; 0 blocks them.'),
  max_players_per_client_proxy: U32(
    'The same limit for addresses of open and residential proxies. Default 2; 0 blocks them.',
  ),
  max_players_per_client_tor: U32('The same limit for Tor exits. Default 2; 0 blocks them.'),
  max_players_per_client_hosting: U32('The same limit for addresses of hosting providers. Default 2; 0 blocks them.'),
}

export const MatchmakerLimits = object(
  {
    lobby_count_max: U32('Lobbies that the namespace may have at a time. Default 128; 0 allows none.'),
    ...client_limits,
  },
  'Limits of the matchmaker in a namespace. A client is an IPv4 address or an IPv6 /64 network. When several limits apply to a client, the strictest holds.',
)

export const CLIENT_LIMITS = Object.keys(client_limits) as (keyof typeof client_limits)[]

const MaxPlayersOfAll = Type.Integer({
  minimum: 0,
  maximum: 4_294_967_295,
  description: 'Sets all five limits per client to this number. A limit that is sent too has its own number.',
})

const LimitDraft = Type.Optional(Type.Unknown({ description: 'Limit to check: any JSON.' }))
const LimitDrafts = object({
  lobby_count_max: LimitDraft,
  max_players_per_client: LimitDraft,
  max_players_per_client_vpn: LimitDraft,
  max_players_per_client_proxy: LimitDraft,
  max_players_per_client_tor: LimitDraft,
  max_players_per_client_hosting: LimitDraft,
  max_players: LimitDraft,
})

export const NamespaceFull = object(
  {
    ...summary,
    config: object(
      {
        cdn: CdnConfig,
        identity: object({}, 'Always an empty object.'),
        kv: object({}, 'Always an empty object.'),
        matchmaker: MatchmakerLimits,
      },
      'Config of the namespace.',
    ),
  },
  'A namespace with its config.',
)

const game = object({ game_id: GameId })
const params = object({ game_id: GameId, namespace_id: NamespaceId })
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

const DeployMessage = Type.Optional(
  described(
    DisplayName(DEPLOY_MESSAGE_LENGTH_MAX),
    'Message for people, which the history of the namespace keeps: at most 500 characters. Example: `Faster rounds`.',
  ),
)

export const createGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.createGameNamespace',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces',
  summary: 'Creates a namespace and deploys a version of the game to it.',
  role: 'developer',
  params: game,
  body: object({
    display_name: DisplayName(NAMESPACE_DISPLAY_NAME_LENGTH_MAX),
    version_id: VersionId,
    name_id: described(
      NameId,
      'Short name, unique in the game: lower-case letters and digits, with single dashes in between. Example: `beta`.',
    ),
    expire_ts: ExpireTs,
    message: DeployMessage,
  }),
  response: object({ namespace_id: NamespaceId }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'NAME_TAKEN', 'QUOTA_REACHED'],
})

export const validateGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.validateGameNamespace',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/validate',
  summary: 'Checks the input for a new namespace without creating it.',
  role: 'developer',
  params: game,
  body: object({ display_name: Draft('Display name to check.'), name_id: Draft('Short name to check.') }),
  response: ValidationErrors,
  errors: ['GAME_NOT_FOUND'],
})

export const getGameNamespaceById = operation({
  ...defaults,
  id: 'games.namespaces.getGameNamespaceById',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}',
  summary: 'Gets a namespace with its config.',
  role: 'viewer',
  params,
  response: object({ namespace: NamespaceFull }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const updateGameNamespaceVersion = operation({
  ...defaults,
  id: 'games.namespaces.updateGameNamespaceVersion',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/version',
  summary: 'Deploys a version of the game to the namespace. Running lobbies keep their version.',
  role: 'developer',
  params,
  body: object({
    version_id: described(VersionId, 'Id of the version to deploy.'),
    message: DeployMessage,
    is_rollback: Type.Optional(
      Type.Boolean({
        description:
          'Whether this goes back from a version that does not work. Its deploy is marked with `rolled_back_ts` in the history of the namespace. Default false.',
      }),
    ),
  }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'VERSION_NOT_FOUND'],
})

export const updateGameNamespaceExpiry = operation({
  ...defaults,
  id: 'games.namespaces.updateGameNamespaceExpiry',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/expiry',
  summary:
    'Sets when the namespace expires; without `expire_ts` it never does. A namespace that has expired is gone for good.',
  role: 'developer',
  params,
  body: object({ expire_ts: ExpireTs }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const updateGameNamespaceMatchmakerConfig = operation({
  ...defaults,
  id: 'games.namespaces.updateGameNamespaceMatchmakerConfig',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config',
  summary: 'Changes the limits that are sent; the others stay as they are. A lower limit removes no players.',
  role: 'developer',
  params,
  body: Type.Partial(object({ ...MatchmakerLimits.properties, max_players: MaxPlayersOfAll }), {
    additionalProperties: false,
    minProperties: 1,
  }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const validateGameNamespaceMatchmakerConfig = operation({
  ...defaults,
  id: 'games.namespaces.validateGameNamespaceMatchmakerConfig',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config/validate',
  summary: 'Checks new limits without changing them.',
  role: 'developer',
  params,
  body: LimitDrafts,
  response: ValidationErrors,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const createGameNamespaceTokenPublic = operation({
  ...defaults,
  id: 'games.namespaces.createGameNamespaceTokenPublic',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public',
  summary: 'Creates a public token for the namespace, valid for 15 years. Game clients contain it.',
  role: 'developer',
  params,
  response: object({ token: Type.String({ description: 'The public token. It may be published with the game.' }) }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
