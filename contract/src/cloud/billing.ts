// What the lobbies of a group's games have used: time, weighted by the cores that each may use.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Id, Instant, IsCut, object } from '../records.ts'

export const BillingUsage = object(
  {
    games: Type.Array(
      object({
        game_id: Id,
        regions: Type.Array(
          object({
            region_id: Id,
            uptime: Type.Integer({
              minimum: 0,
              description:
                'Milliseconds of one core: the time that each server ran, times the cores of its tier, rounded once, half up.',
            }),
            cost_micros: Type.Optional(
              Type.Integer({
                minimum: 0,
                description:
                  "Millionths of the currency: the uptime at the region's price, rounded half up; absent where the region has none.",
              }),
            ),
          }),
        ),
      }),
      { description: 'Games whose servers ran, deleted ones too.' },
    ),
    is_cut: IsCut(
      'The window reaches back to times whose records may have been removed (MUSTER_RETENTION_RUNS_DAYS): the real use may be higher.',
    ),
    currency: Type.Optional(Type.String({ description: 'Of prices, ISO 4217; absent when there are none.' })),
  },
  'What the lobbies of a group used in a window.',
)

export const getUsage = operation({
  id: 'groups.billing.getUsage',
  service: 'api',
  method: 'GET',
  path: '/cloud/groups/{group_id}/billing/usage',
  summary: 'Tells what the servers of the games of a group used: the cores they had, and for how long, by region.',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ group_id: Id }),
  query: object({
    query_start_ts: Type.Optional(Instant('Without: the beginning of the calendar month of the end, UTC.')),
    query_end_ts: Type.Optional(Instant('Without, and at most: now.')),
  }),
  response: BillingUsage,
  errors: ['GROUP_NOT_FOUND'],
})
