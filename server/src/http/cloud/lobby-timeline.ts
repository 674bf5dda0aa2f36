import { getLobbyTimeline } from '@musterhost/contract'
import { lobbyTimeline } from '../../cloud/lobbies/timeline.ts'
import { type Implementation, implement } from '../implement.ts'

export const lobbyTimelines: Implementation[] = [
  implement(getLobbyTimeline, ({ ctx, caller, params, query }) => lobbyTimeline(ctx, caller, params, query)),
]
