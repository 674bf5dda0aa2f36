import { ApiError, setupIdentity } from '@muster/contract'
import type { GuestQuota } from '../../identity/guest-quota.ts'
import { setUpGuest } from '../../identity/guests.ts'
import { type Implementation, implement } from '../implement.ts'

export const guests = (quota: GuestQuota): Implementation[] => [
  implement(setupIdentity, ({ ctx, caller, client, body }) => {
    if (caller.kind !== 'namespace' && caller.kind !== 'development') throw new ApiError('API_FORBIDDEN')
    const { namespace_id } = caller
    const identity_id = caller.kind === 'namespace' ? caller.identity_id : null
    return setUpGuest(ctx, quota, { namespace_id, identity_id, client_key: client }, body.existing_identity_token)
  }),
]
