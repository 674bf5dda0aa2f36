// Data of one player of a game: all of it as a file, and its erasure. A player is an identity, an address, or both.
import Type, { type Static } from 'typebox'
import { GameId, Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'

/** Characters of an address: an IPv6 address with an IPv4 address at its end. */
const ADDRESS_LENGTH_MAX = 45
/** Erasures of one response. */
export const ERASURES_MAX = 100

const subject = {
  identity_id: Type.Optional(Id('Id of the identity of the player. `player.identity_id` of the SDK has it.')),
  address: Type.Optional(
    Type.String({
      minLength: 2,
      maxLength: ADDRESS_LENGTH_MAX,
      description:
        'IPv4 or IPv6 address of the player. Seats are stored with the /64 of an IPv6 address, so they are those of the /64. Example: `203.0.113.7`.',
      examples: ['203.0.113.7'],
    }),
  ),
}

export const Erasure = object(
  {
    erasure_id: Id('Id of the erasure.'),
    begin_ts: Timestamp('When it began.'),
    end_ts: Type.Optional(Timestamp('When it ended. Absent: it was interrupted. Repeat it.')),
    counts: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: 'Entries that were erased, by section of the file: `identity`, `seats`, `kv` and others.',
    }),
    left: Type.Array(
      object(
        {
          what: Type.Enum(['lobby_logs', 'journal', 'audit_events', 'captcha_clients', 'parties', 'backups'], {
            description: 'What still has data of the player.',
          }),
          until_ts: Type.Optional(Timestamp('When the last of it is removed. Absent: settings do not say.')),
        },
        'Data that an erasure does not reach.',
      ),
      { description: 'What the erasure did not reach, and until when it is kept.' },
    ),
  },
  'The erasure of a player. It names neither the player nor an address.',
)
export type Erasure = Static<typeof Erasure>

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const path = '/cloud/games/{game_id}/player-data'
const params = object({ game_id: GameId })

export const exportPlayerData = operation({
  ...defaults,
  id: 'games.playerData.exportPlayerData',
  method: 'POST',
  path: `${path}/export`,
  summary:
    'Gets a URL for a file with all data of a player of the game, a JSON object a line. Name an identity, an address, or both.',
  role: 'developer',
  params,
  body: object(subject),
  response: object({
    url: Type.String({ description: 'URL of the file, valid for an hour. It needs no credential, so keep it secret.' }),
  }),
  errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR'],
})

export const erasePlayerData = operation({
  ...defaults,
  id: 'games.playerData.erasePlayerData',
  confirm: true,
  method: 'POST',
  path: `${path}/erase`,
  summary:
    'Erases the data of a player of the game, and records it. Refused until 15 minutes after the end of the last seat. It may be repeated.',
  auth: ['admin', 'user'],
  role: 'owner',
  params,
  body: object(subject),
  response: object({ erasure: Erasure }),
  errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR', 'IN_USE'],
})

export const listErasures = operation({
  ...defaults,
  id: 'games.playerData.listErasures',
  method: 'GET',
  path: `${path}/erasures`,
  summary:
    'Lists the erasures of the game, newest first. With an identity or an address, only those of this player: whether the player was erased.',
  role: 'viewer',
  params,
  query: object(subject),
  response: object({
    erasures: Type.Array(Erasure, {
      maxItems: ERASURES_MAX,
      description: 'The newest 100 erasures.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR'],
})
