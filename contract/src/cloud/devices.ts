// Device links: how a program without a browser, such as the CLI, gets a credential. The program prepares a link and shows
// it. A person who is logged in opens the link and chooses a game. The program polls, and receives a cloud token.
import Type from 'typebox'
import { GameId, Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Timestamp, Watch, WatchIndex } from '../records.ts'

const DeviceLinkToken = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Token of the device link, as the prepare operation returned it.',
})

const defaults = { service: 'api', path: '/cloud/devices/links', rate_limit: 'cloud' } as const

export const prepareDeviceLink = operation({
  ...defaults,
  id: 'devices.links.prepare',
  method: 'POST',
  summary: 'Prepares a device link, valid for an hour.',
  auth: ['anyone'],
  body: Type.Optional(
    object({
      name: Type.Optional(
        Type.String({
          format: 'display-name',
          minLength: 1,
          maxLength: 64,
          description: 'Name of the machine or program, shown to the person who confirms. Example: `ada-laptop`.',
        }),
      ),
    }),
  ),
  response: object({
    device_link_id: Id('Id of the device link.'),
    device_link_token: Type.String({ description: 'Secret of the link. The program keeps it and polls with it.' }),
    device_link_url: Type.String({
      description: 'Page on which a person confirms or refuses the link. Show it to the person.',
    }),
  }),
})

export const getDeviceLink = operation({
  ...defaults,
  id: 'devices.links.get',
  method: 'GET',
  summary:
    'Gets the cloud token of a device link once the link is complete. With a watch index, the call waits for a change.',
  auth: ['anyone'],
  query: object({
    device_link_token: DeviceLinkToken,
    watch_index: WatchIndex,
  }),
  response: object({
    cloud_token: Type.Optional(
      Type.String({
        description: 'Cloud token for the game that the person chose. Absent until the link is complete.',
      }),
    ),
    watch: Watch,
  }),
  errors: ['CLOUD_DEVICE_LINK_INVALID'],
})

export const inspectDeviceLink = operation({
  ...defaults,
  id: 'devices.links.inspect',
  method: 'GET',
  path: '/cloud/devices/links/inspect',
  summary: 'Gets what a device link asks for: which program, from where, since when, and what it will be allowed.',
  auth: ['admin', 'user'],
  query: object({ device_link_token: DeviceLinkToken }),
  response: object({
    device_link_id: Id('Id of the device link.'),
    code: Type.String({ description: 'End of the id, which the program shows too. Example: `6a1d4b07`.' }),
    name: Type.Optional(
      Type.String({
        description: 'Name that the program gave for its machine. It may be false. Absent when it gave none.',
      }),
    ),
    client_ip: Type.Optional(
      Type.String({ description: 'Address from which the link was prepared. Example: `203.0.113.7`.' }),
    ),
    create_ts: Timestamp('When the link was prepared.'),
    expire_ts: Timestamp('When the link expires.'),
    is_complete: Type.Boolean({ description: 'Whether a person has completed it already.' }),
    grant: object(
      {
        kind: Type.Literal('cloud_token', {
          description:
            '`cloud_token`: the program may do everything in the chosen game that a developer of its group may.',
        }),
        lifetime_ms: Type.Integer({ minimum: 0, description: 'How long the cloud token is valid. Milliseconds.' }),
      },
      'What the program receives when the link is completed.',
    ),
  }),
  errors: ['CLOUD_DEVICE_LINK_INVALID'],
})

export const completeDeviceLink = operation({
  ...defaults,
  id: 'devices.links.complete',
  method: 'POST',
  path: '/cloud/devices/links/complete',
  summary: 'Completes a device link: the program that prepared it receives a cloud token of the game.',
  auth: ['admin', 'user'],
  role: 'developer',
  body: object({ device_link_token: DeviceLinkToken, game_id: GameId }),
  response: Empty,
  errors: ['CLOUD_DEVICE_LINK_INVALID', 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE', 'GAME_NOT_FOUND'],
})

export const refuseDeviceLink = operation({
  ...defaults,
  id: 'devices.links.refuse',
  method: 'POST',
  path: '/cloud/devices/links/refuse',
  summary: 'Refuses a device link that is not complete. The program that prepared it receives an error.',
  auth: ['admin', 'user'],
  body: object({ device_link_token: DeviceLinkToken }),
  response: Empty,
  errors: ['CLOUD_DEVICE_LINK_INVALID', 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE'],
})
