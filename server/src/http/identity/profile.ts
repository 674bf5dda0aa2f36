import { getSelfProfile, updateProfile, validateProfile } from '@musterhost/contract'
import { findGuest, renameGuest } from '../../identity/guests.ts'
import { changeProfile, checkProfile, findProfile } from '../../identity/profile.ts'
import { type Implementation, implement } from '../implement.ts'
import type { WatchedRecords } from '../watched-records.ts'

export const profile = (records: WatchedRecords): Implementation[] => [
  implement(getSelfProfile, (request) => {
    const { ctx, caller } = request
    const find = () => (caller.kind === 'identity' ? findGuest(ctx, caller) : findProfile(ctx, caller))
    return records.respond(request, async () => ({ identity: await find() }))
  }),
  implement(updateProfile, ({ ctx, caller, body }) =>
    caller.kind === 'identity' ? renameGuest(ctx, caller, body) : changeProfile(ctx, caller, body),
  ),
  implement(validateProfile, ({ body }) => ({ errors: checkProfile(body) })),
]
