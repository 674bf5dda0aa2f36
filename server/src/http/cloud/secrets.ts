import { listGameSecrets, removeGameSecret, setGameSecret } from '@musterhost/contract'
import * as cloud from '../../cloud/tokens/secrets.ts'
import { implement } from '../implement.ts'

export const secrets = [
  implement(listGameSecrets, ({ ctx, caller, params }) => cloud.listSecrets(ctx, caller, params.game_id)),
  implement(setGameSecret, async ({ ctx, caller, params, body }) => {
    await cloud.setSecret(ctx, caller, { ...params, namespace_id: body.namespace_id }, body.value)
    return {}
  }),
  implement(removeGameSecret, async ({ ctx, caller, params, query }) => {
    await cloud.removeSecret(ctx, caller, { ...params, namespace_id: query.namespace_id })
    return {}
  }),
]
