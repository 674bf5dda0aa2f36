// Events for an identity. An event is delivered until it expires, or until the client sends a later watch index.
import Type from 'typebox'
import { Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, object, Timestamp, Watch } from '../records.ts'
import { Seat } from './lobbies.ts'

export const GlobalEvent = object(
  {
    event_id: Id('Id of the event.'),
    ts: Timestamp('When the event happened.'),
    kind: object(
      {
        matchmaker_lobby_join: Type.Optional(
          described(Seat, 'The leader of the party got seats: this one is for the identity.'),
        ),
      },
      'What happened: one member, named like the kind of event.',
    ),
  },
  'An event, delivered at least once. Ignore an event whose `event_id` is known.',
)

export const watchEvents = operation({
  id: 'identities.events.watch',
  service: 'matchmaker',
  method: 'GET',
  path: '/identity/events/live',
  summary:
    "Gets the caller's events. With a watch index, the call waits for later ones. A WebSocket at the same address streams them, with the token as `identity_token` in the query.",
  auth: ['identity'],
  rate_limit: 'matchmaker',
  query: object({
    watch_index: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'Long poll: `watch.index` of the previous response. The call waits up to 40 s for later events. Without it, pending events are returned at once.',
      }),
    ),
  }),
  response: object({
    events: Type.Array(GlobalEvent, { description: 'The events, oldest first. Empty when none arrived in time.' }),
    watch: Watch,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})
