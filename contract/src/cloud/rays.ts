// Timings of a request, by the ray id of its response: how long each service that it passed through took, and for what.
import Type, { type Static } from 'typebox'
import { GameId, NamespaceId, PlayerId, RayId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Instant, IsCut, Microseconds, object } from '../records.ts'

const Microtime = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} RFC 3339, UTC, microseconds.` })
const RequestId = Type.Optional(
  Type.String({ format: 'uuid', description: 'Id of the request, as in the `x-ray-id` header and in log lines.' }),
)

const RaySpan = object({
  label: Type.String({ description: 'What the service did, such as `auth`, `choose` or `commit`: see docs/rays.md.' }),
  req_id: RequestId,
  start_ts: Microtime('When the span began.'),
  finish_ts: Type.Optional(Microtime('When the span ended.')),
})

const RayMark = object({
  label: Type.String({ description: 'What happened. For a refused request, the error code.' }),
  ray_id: Type.Optional(described(RayId, 'Ray id of another request that this one depended on.')),
  req_id: RequestId,
  ts: Microtime('When it happened.'),
})

export const ServicePerf = object(
  {
    svc_name: Type.String({ description: 'Name of the service: `edge`, `api`, `matchmaker` or `runner`.' }),
    operation: Type.String({ description: 'Operation that the service performed. Example: `lobbies.find`.' }),
    req_id: RequestId,
    ts: Microtime('When the request arrived at the service.'),
    duration: Microseconds('Time from `ts` until the response was complete.'),
    spans: Type.Array(RaySpan, {
      description: 'Steps of the request, in order and without gaps: their durations add up to `duration`.',
    }),
    marks: Type.Array(RayMark, { description: 'Single events during the request.' }),
  },
  'Timings of a request in one service.',
)
export type ServicePerf = Static<typeof ServicePerf>

export const getRayPerfLogs = operation({
  id: 'logs.getRayPerfLogs',
  service: 'api',
  method: 'GET',
  path: '/cloud/rays/{ray_id}/perf',
  summary: 'Gets the timings of a request in each service. Every response has its ray id in the header `x-ray-id`.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ ray_id: RayId }),
  response: object({
    perf_lists: Type.Array(ServicePerf, {
      description: 'Timings, one entry for each service that the request passed through.',
    }),
    is_cut: IsCut('It contains the first 64 services.'),
  }),
  errors: ['RAY_NOT_FOUND'],
})

export const RaySummary = object(
  {
    ray_id: RayId,
    ts: Microtime('When the request arrived.'),
    service: Type.String({ description: 'Service that performed the request: `edge`, `api` or `matchmaker`.' }),
    operation: Type.String({ description: 'Operation of the request. Example: `lobbies.find`.' }),
    code: Type.Optional(Type.String({ description: 'Error code of the response. Absent when the request succeeded.' })),
    duration: Microseconds('Time until the response was complete.'),
    namespace_id: Type.Optional(described(NamespaceId, 'Namespace of the request. Absent for a request of the game.')),
    player_id: Type.Optional(
      described(PlayerId, 'Player whose seat the request gave or changed; of a party, the player of its leader.'),
    ),
    has_explanation: Type.Boolean({ description: 'Whether `explainRay` has the decision about this request.' }),
  },
  'A request of a game that was kept.',
)
export type RaySummary = Static<typeof RaySummary>

/** Rays of one page. */
export const RAYS_PAGE_MAX = 100

export const listGameRays = operation({
  id: 'logs.listGameRays',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/rays',
  summary:
    'Lists the kept requests of a game and its namespaces, newest first. Failed and slow requests are kept, and a sample of the others: see docs/rays.md.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ game_id: GameId }),
  query: object({
    namespace_id: Type.Optional(described(NamespaceId, 'Only requests of this namespace.')),
    code: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'Only requests with this error code. `none`: only requests that succeeded. `any`: only failed ones.',
      }),
    ),
    operation: Type.Optional(
      Type.String({ maxLength: 128, description: 'Only requests of this operation. Example: `lobbies.find`.' }),
    ),
    duration_min: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000_000,
        description: 'Only requests that took at least this long. Microseconds. Example: 500,000.',
      }),
    ),
    player_id: Type.Optional(described(PlayerId, 'Only requests that gave or changed the seat of this player.')),
    query_start: Type.Optional(Instant('Only requests that arrived at this time or later.')),
    query_end: Type.Optional(Instant('Only requests that arrived before this time.')),
    cursor: Type.Optional(
      Type.String({
        maxLength: 64,
        description: '`next_cursor` of the previous page. Without it, the newest are listed.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RAYS_PAGE_MAX,
        description: 'Requests of the page, at most 100. Default 50.',
      }),
    ),
  }),
  response: object({
    rays: Type.Array(RaySummary, { description: 'The requests, newest first.' }),
    next_cursor: Type.Optional(
      Type.String({
        description:
          'Position after this page. Absent when the list is complete. A page searches a limited number of requests, so it may have fewer than `limit`, or none, and still a next page.',
      }),
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
