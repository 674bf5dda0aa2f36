// Describes the caller to itself.
import type { inspectAuth, ResponseOf } from '@musterhost/contract'
import type { Caller } from '../tokens/caller.ts'

export function inspectCaller(caller: Caller): ResponseOf<typeof inspectAuth> {
  switch (caller.kind) {
    case 'user':
      return { agent: { identity: { identity_id: caller.user_id } } }
    case 'admin':
      return {
        agent: {
          access_token: { name: caller.name },
          ...(caller.user_id === null ? {} : { identity: { identity_id: caller.user_id } }),
        },
      }
    case 'cloud':
      return { agent: { game_cloud: { game_id: caller.game_id } } }
    default:
      return { agent: {} }
  }
}
