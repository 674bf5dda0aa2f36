import { listGameSecrets, removeGameSecret, setGameSecret } from '@musterhost/contract'
import * as cloud from '../../cloud/tokens/secrets.ts'
import { implement } from '../implement.ts'

export const secrets = [
  implement(listGameSecrets, ({ ctx, caller, params }) => cloud.listSecrets(ctx, caller, params.game_id)),
  implement(setGameSecret, ({ ctx, caller, params, body }) =>
    cloud.setSecret(ctx, caller, { ...params, namespace_id: body.namespace_id }, body.value),
  ),
  implement(removeGameSecret, ({ ctx, caller, params, query }) =>
    cloud.removeSecret(ctx, caller, { ...params, namespace_id: query.namespace_id }),
  ),
]
