// Events for an identity. An event with a seat is delivered until it expires, or until the client sends a later watch index. Events
// of a request that waits are the state at their time, for clients that ask for them.
import Type from 'typebox'
import { Id, LobbyId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, object, Timestamp, Watch } from '../records.ts'
import { Seat } from './lobbies.ts'
import { RefusedBy, waitMembers } from './match-wait.ts'

const MatchWaiting = object({
  reason: Type.Enum(['waiting', 'starting'], {
    description: '`waiting`: for players who fit. `starting`: the match is made, and its lobby starts.',
  }),
  ...{
    waited_ms: Type.Optional(waitMembers.waited_ms),
    usual_wait_ms: waitMembers.usual_wait_ms,
    players_waiting: Type.Optional(waitMembers.players_waiting),
    players_missing: Type.Optional(waitMembers.players_missing),
    refused_by: Type.Optional(RefusedBy),
  },
  lobby_id: Type.Optional(described(LobbyId, 'Lobby that starts. Only with `starting`, which has no other member.')),
})

const MatchWaitEnded = object({
  reason: Type.Enum(['ready', 'failed', 'withdrawn', 'party_changed', 'version_ended', 'unknown'], {
    description:
      '`ready`: the lobby of the match is ready. `failed`: it did not start; the find may try once more. `withdrawn`: the find returned or hung up, and was not repeated in time. `party_changed`: the party has other members. `version_ended`: another version was deployed. `unknown`: the platform does not remember the request.',
  }),
  lobby_id: Type.Optional(described(LobbyId, 'Lobby of the match. Only with `ready` and `failed`.')),
})

export const GlobalEvent = object(
  {
    event_id: Id('Id of the event.'),
    ts: Timestamp('When the event happened.'),
    kind: object(
      {
        matchmaker_lobby_join: Type.Optional(
          described(Seat, 'The leader of the party got seats: this one is for the identity.'),
        ),
        matchmaker_waiting: Type.Optional(
          described(
            MatchWaiting,
            'What a find of the identity, or of the leader of its party, waits for by the rules of its game mode. The latest of these events holds. Only with `waiting_every_s`.',
          ),
        ),
        matchmaker_wait_ended: Type.Optional(
          described(MatchWaitEnded, 'That find waits no more, and why. Only with `waiting_every_s`.'),
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
    waiting_every_s: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 60,
        description:
          'Adds the events `matchmaker_waiting` and `matchmaker_wait_ended`: at once when the wait begins, starts a lobby or ends, and at most every so many seconds when its numbers change. On a busy platform they come less often. Default: none of these events.',
      }),
    ),
  }),
  response: object({
    events: Type.Array(GlobalEvent, { description: 'The events, oldest first. Empty when none arrived in time.' }),
    watch: Watch,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})
