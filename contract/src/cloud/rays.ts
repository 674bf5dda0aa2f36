// Timings of a request, by the ray id of its response: how long each service that it passed through took, and for what.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, IsCut, Microseconds, object } from '../records.ts'

const Microtime = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} RFC 3339, UTC, microseconds.` })
const RequestId = Type.Optional(
  Type.String({ format: 'uuid', description: 'Id of the request, as in the x-ray-id header and in log lines.' }),
)

const RaySpan = object({
  label: Type.String(),
  req_id: RequestId,
  start_ts: Microtime('When it began.'),
  finish_ts: Type.Optional(Microtime('When it ended.')),
})

const RayMark = object({
  label: Type.String({ description: 'What happened; the code that the request was refused with.' }),
  ray_id: Type.Optional(Id),
  req_id: RequestId,
  ts: Microtime('When.'),
})

export const ServicePerf = object(
  {
    svc_name: Type.String({ description: 'edge, api, matchmaker or runner.' }),
    operation: Type.String({ description: 'What the service was asked for.' }),
    req_id: RequestId,
    ts: Microtime('When it came.'),
    duration: Microseconds('Until the answer was made.'),
    spans: Type.Array(RaySpan, { description: 'One after the other, without a gap.' }),
    marks: Type.Array(RayMark),
  },
  'Where the time of a request went in one service.',
)
export type ServicePerf = Static<typeof ServicePerf>

export const getRayPerfLogs = operation({
  id: 'logs.getRayPerfLogs',
  service: 'api',
  method: 'GET',
  path: '/cloud/rays/{ray_id}/perf',
  summary: 'Tells where the time of a request went. The ray id is in x-ray-id of every answer.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ ray_id: Id }),
  response: object({ perf_lists: Type.Array(ServicePerf), is_cut: IsCut('It has the first 64 services.') }),
  errors: ['RAY_NOT_FOUND'],
})
