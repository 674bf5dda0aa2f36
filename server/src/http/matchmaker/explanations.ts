import { explainRay } from '@musterhost/contract'
import { requireDeveloper } from '../../cloud/rays/rays.ts'
import type { Context } from '../../context.ts'
import { readExplanation } from '../../matchmaker/explanations/read.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { type Implementation, implement } from '../implement.ts'

export const explanations = (ctx: Context, matchmaker: Matchmaker): Implementation[] => [
  implement(explainRay, async ({ caller, params }) => {
    const { game_id, explanation } = await readExplanation(ctx, matchmaker.context().explanations, params.ray_id)
    await requireDeveloper(ctx, caller, game_id)
    return { explanation }
  }),
]
