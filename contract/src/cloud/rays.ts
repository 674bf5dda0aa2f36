// Timings of a request, by the ray id of its response: how long each service that it passed through took, and for what.
import Type, { type Static } from 'typebox'
import { RayId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, IsCut, Microseconds, object } from '../records.ts'

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
