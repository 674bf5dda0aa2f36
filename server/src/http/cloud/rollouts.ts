import { endRollout, getRollout, setRollout } from '@musterhost/contract'
import * as cloud from '../../cloud/rollouts/rollouts.ts'
import { implement } from '../implement.ts'

export const rollouts = [
  implement(setRollout, ({ ctx, caller, params, body }) => cloud.setRollout(ctx, caller, params, body)),
  implement(getRollout, ({ ctx, caller, params }) => cloud.findRollout(ctx, caller, params)),
  implement(endRollout, ({ ctx, caller, params, body }) => cloud.endRollout(ctx, caller, params, body)),
]
