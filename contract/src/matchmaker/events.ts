// What an identity is told while it listens. An event stays until its time is over, and is told again to whoever has not
// shown an index from behind it.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Id, object, Timestamp } from '../records.ts'
import { Seat } from './lobbies.ts'

export const GlobalEvent = object(
  {
    event_id: Id,
    ts: Timestamp,
    kind: object({
      matchmaker_lobby_join: Type.Optional(Seat),
    }),
  },
  'Told at least once: of two with the same event_id one is a repetition.',
)

export const watchEvents = operation({
  id: 'identities.events.watch',
  service: 'matchmaker',
  method: 'GET',
  path: '/identity/events/live',
  summary:
    'Events of the identity that calls. Without a watch_index those that are still open, at once; with one those behind it, as soon as there are any, or none after a while. The same address takes a WebSocket, with the token as identity_token in the query.',
  auth: ['identity'],
  rate_limit: 'matchmaker',
  query: object({
    watch_index: Type.Optional(
      Type.String({ maxLength: 2048, description: 'The `watch.index` of the answer before.' }),
    ),
  }),
  response: object({ events: Type.Array(GlobalEvent), watch: object({ index: Type.String() }) }),
  errors: ['NAMESPACE_NOT_FOUND'],
})
