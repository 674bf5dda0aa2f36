// Billing: core time that the lobbies of a group's games used.
import Type from 'typebox'
import { GameId, GroupId, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Instant, IsCut, object } from '../records.ts'

export const BillingUsage = object(
  {
    games: Type.Array(
      object({
        game_id: GameId,
        regions: Type.Array(
          object({
            region_id: RegionId,
            uptime: Type.Integer({
              minimum: 0,
              description:
                'Core time in milliseconds: the running time of each server times the cores of its tier. The sum is rounded once, half up.',
            }),
            cost_micros: Type.Optional(
              Type.Integer({
                minimum: 0,
                description:
                  'Cost of `uptime` in millionths of the currency, rounded half up. Absent when the region has no price.',
              }),
            ),
          }),
          { description: 'Usage by region.' },
        ),
      }),
      { description: 'Games whose lobbies ran in the window, including deleted games.' },
    ),
    is_cut: IsCut(
      'True when the window begins before the oldest records (`MUSTER_RETENTION_RUNS_DAYS`): the real usage may be higher.',
    ),
    currency: Type.Optional(
      Type.String({
        description: 'Currency of the costs, ISO 4217. Absent when no region has a price. Example: `EUR`.',
      }),
    ),
  },
  'Usage of a group in a time window.',
)

export const getUsage = operation({
  id: 'groups.billing.getUsage',
  service: 'api',
  method: 'GET',
  path: '/cloud/groups/{group_id}/billing/usage',
  summary: 'Gets the core time that the lobbies of a group used, by game and region.',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ group_id: GroupId }),
  query: object({
    query_start_ts: Type.Optional(
      Instant('Start of the window. Default: the beginning of the calendar month (UTC) in which the window ends.'),
    ),
    query_end_ts: Type.Optional(Instant('End of the window. Default and maximum: now.')),
  }),
  response: BillingUsage,
  errors: ['GROUP_NOT_FOUND'],
})
