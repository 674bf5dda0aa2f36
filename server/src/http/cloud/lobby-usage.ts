import { getLobbyUsage } from '@musterhost/contract'
import { lobbyUsage } from '../../cloud/lobbies/usage.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbyUsages: Implementation[] = [
  implement(getLobbyUsage, ({ ctx, caller, params, query }) => lobbyUsage(ctx, caller, params, query.step_ms)),
]
