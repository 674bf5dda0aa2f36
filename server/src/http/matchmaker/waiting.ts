import { listWaitingRequests } from '@musterhost/contract'
import { requireGame } from '../../cloud/access.ts'
import type { Context } from '../../context.ts'
import { waitingRequests } from '../../matchmaker/calls/waiting-requests.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const waiting = (ctx: Context, matchmaker: Matchmaker): Implementation[] => [
  implement(listWaitingRequests, async ({ caller, params, query }) => {
    await requireGame(ctx, caller, params.game_id)
    return waitingRequests(matchmaker.context(), params, query)
  }),
]
