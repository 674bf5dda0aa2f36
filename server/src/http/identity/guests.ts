import { ApiError, setupIdentity } from '@muster/contract'
import { setUpGuest } from '../../identity/guests.ts'
import { implement } from '../implement.ts'

export const guests = [
  implement(setupIdentity, ({ ctx, caller, body }) => {
    if (caller.kind !== 'namespace' && caller.kind !== 'development') throw new ApiError('API_FORBIDDEN')
    const { namespace_id } = caller
    const identity_id = caller.kind === 'namespace' ? caller.identity_id : null
    return setUpGuest(ctx, { namespace_id, identity_id }, body.existing_identity_token)
  }),
]
