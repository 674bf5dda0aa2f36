// Namespaces: where a version of a game is played (prod, staging, ...). Each has its own players, lobbies and limits.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { DisplayName, Empty, Id, NameId, object, Timestamp, U32 } from '../records.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const NAMESPACE_DISPLAY_NAME_LENGTH_MAX = 128

const summary = {
  namespace_id: Id,
  create_ts: Timestamp,
  display_name: Type.String({ description: 'Readable display name.' }),
  version_id: Id,
  name_id: Type.String({ description: 'Short human readable identifier without special characters.' }),
}

export const NamespaceSummary = object(summary, 'A namespace in short.')

const DomainRecord = object({
  type: Type.Enum(['CNAME', 'TXT'], { description: 'Type of the DNS record.' }),
  name: Type.String({ description: 'Full name of the DNS record, without the dot at the end.' }),
  value: Type.String({ description: 'Value of the DNS record: the target of a CNAME, the text of a TXT.' }),
})

export const CdnDomain = object({
  domain: Type.String({ description: 'A domain name without protocol.' }),
  create_ts: Timestamp,
  verification_status: Type.Enum(['active', 'pending', 'failed'], {
    description:
      'The site is served under the domain while it is `active`. A `failed` claim is still checked for days.',
  }),
  verification_method: Type.Union(
    [
      object({ http: object({ cname_record: Type.String({ description: 'Target of the CNAME record.' }) }) }),
      object({ invalid: object({}) }),
    ],
    { description: 'The CNAME record in the form of older clients. `verification_records` has all records.' },
  ),
  verification_records: Type.Array(DomainRecord, {
    description:
      'DNS records that prove the claim; set any one of them, exactly as it is. A wildcard record proves nothing. Only the TXT record is listed for the top of a zone, and where another group has a domain above or below this one.',
  }),
  verification_errors: Type.Array(Type.String(), {
    description: 'What the last check found wrong, one line for each record.',
  }),
})

export const CdnConfig = object({
  enable_domain_public_auth: Type.Boolean({
    description: 'Whether a page on the namespace’s own host may use the matchmaker without a token.',
  }),
  domains: Type.Array(CdnDomain),
  auth_type: Type.Enum(['none', 'basic'], { description: 'What a visitor of the site must show.' }),
  auth_user_list: Type.Array(object({ user: Type.String() })),
})

const client_limits = {
  max_players_per_client: U32,
  max_players_per_client_vpn: U32,
  max_players_per_client_proxy: U32,
  max_players_per_client_tor: U32,
  max_players_per_client_hosting: U32,
}

export const MatchmakerLimits = object({ lobby_count_max: U32, ...client_limits }, 'Unsigned 32 bit; 0 blocks.')

export const CLIENT_LIMITS = Object.keys(client_limits) as (keyof typeof client_limits)[]

const MaxPlayersOfAll = Type.Integer({
  minimum: 0,
  maximum: 4_294_967_295,
  description: 'Sets all five limits of a client at once. A limit that is named beside it keeps its own number.',
})

const LimitDraft = Type.Optional(Type.Unknown({ description: 'Yet to be judged.' }))
const LimitDrafts = object({
  lobby_count_max: LimitDraft,
  max_players_per_client: LimitDraft,
  max_players_per_client_vpn: LimitDraft,
  max_players_per_client_proxy: LimitDraft,
  max_players_per_client_tor: LimitDraft,
  max_players_per_client_hosting: LimitDraft,
  max_players: LimitDraft,
})

export const NamespaceFull = object({
  ...summary,
  config: object({ cdn: CdnConfig, identity: object({}), kv: object({}), matchmaker: MatchmakerLimits }),
})

const game = object({ game_id: Id })
const params = object({ game_id: Id, namespace_id: Id })
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const createGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.createGameNamespace',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces',
  summary: 'Creates a namespace on a version of the game.',
  role: 'developer',
  params: game,
  body: object({ display_name: DisplayName(NAMESPACE_DISPLAY_NAME_LENGTH_MAX), version_id: Id, name_id: NameId }),
  response: object({ namespace_id: Id }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'NAME_TAKEN', 'QUOTA_REACHED'],
})

export const validateGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.validateGameNamespace',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/validate',
  summary: 'Validates information used to create a new namespace.',
  role: 'developer',
  params: game,
  body: object({ display_name: Draft, name_id: Draft }),
  response: ValidationErrors,
  errors: ['GAME_NOT_FOUND'],
})

export const getGameNamespaceById = operation({
  ...defaults,
  id: 'games.namespaces.getGameNamespaceById',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}',
  summary: 'Gets a namespace by its id.',
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
  summary: 'Deploys a version of the game to the namespace. Lobbies that run go on as they are.',
  role: 'developer',
  params,
  body: object({ version_id: Id }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'VERSION_NOT_FOUND'],
})

export const updateGameNamespaceMatchmakerConfig = operation({
  ...defaults,
  id: 'games.namespaces.updateGameNamespaceMatchmakerConfig',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/mm-config',
  summary: 'Changes the limits that are named, the others stay. Nobody who plays is removed by a lower limit.',
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
  summary: 'Validates limits that are to be changed.',
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
  summary: 'Creates a public token for the namespace: a game client may carry it.',
  role: 'developer',
  params,
  response: object({ token: Type.String() }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
