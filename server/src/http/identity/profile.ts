import { getSelfProfile, updateProfile, validateProfile } from '@muster/contract'
import { changeProfile, checkProfile, findProfile } from '../../identity/profile.ts'
import { implement } from '../implement.ts'

export const profile = [
  implement(getSelfProfile, async ({ ctx, caller }) => ({ identity: await findProfile(ctx, caller) })),
  implement(updateProfile, async ({ ctx, caller, body }) => {
    await changeProfile(ctx, caller, body)
    return {}
  }),
  implement(validateProfile, ({ body }) => ({ errors: checkProfile(body) })),
]
