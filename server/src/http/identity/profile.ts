import { getSelfProfile, updateProfile, validateProfile } from '@muster/contract'
import { findGuest, renameGuest } from '../../identity/guests.ts'
import { changeProfile, checkProfile, findProfile } from '../../identity/profile.ts'
import { implement } from '../implement.ts'

export const profile = [
  implement(getSelfProfile, async ({ ctx, caller }) => ({
    identity: await (caller.kind === 'identity' ? findGuest(ctx, caller) : findProfile(ctx, caller)),
  })),
  implement(updateProfile, async ({ ctx, caller, body }) => {
    await (caller.kind === 'identity' ? renameGuest(ctx, caller, body) : changeProfile(ctx, caller, body))
    return {}
  }),
  implement(validateProfile, ({ body }) => ({ errors: checkProfile(body) })),
]
