import { ApiError, explainRay } from '@muster/contract'
import type { Caller } from '../../caller.ts'
import { requireGame } from '../../cloud/access.ts'
import type { Context } from '../../context.ts'
import { readExplanation } from '../../matchmaker/rays.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const rays = (ctx: Context, matchmaker: Matchmaker): Implementation[] => [
  implement(explainRay, async ({ caller, params }) => {
    const { game_id, explanation } = await readExplanation(ctx, matchmaker.desk().rays, params.ray_id)
    await requireDeveloper(ctx, caller, game_id)
    return { explanation }
  }),
]

/** To everybody else there is no such ray: members who only look too. */
async function requireDeveloper(ctx: Context, caller: Caller, game_id: string): Promise<void> {
  try {
    await requireGame(ctx, caller, game_id, 'RAY_NOT_FOUND')
  } catch (error) {
    const is_viewer = error instanceof ApiError && error.code === 'GROUP_INSUFFICIENT_PERMISSIONS'
    throw is_viewer ? new ApiError('RAY_NOT_FOUND') : error
  }
}
