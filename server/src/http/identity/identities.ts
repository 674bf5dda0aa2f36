import { setupIdentity } from '@musterhost/contract'
import type { GuestQuota } from '../../identity/guest-quota.ts'
import { setUpGuest } from '../../identity/guests.ts'
import { type Implementation, implement } from '../implement.ts'

export const identities = (quota: GuestQuota): Implementation[] => [
  implement(setupIdentity, {
    namespace: ({ ctx, caller: { namespace_id, identity_id }, client_key, body }) =>
      setUpGuest(ctx, quota, { namespace_id, identity_id, client_key }, body.existing_identity_token),
    development: ({ ctx, caller: { namespace_id }, client_key, body }) =>
      setUpGuest(ctx, quota, { namespace_id, identity_id: null, client_key }, body.existing_identity_token),
  }),
]
