// Device links: how a program without a browser, such as the CLI, gets a credential. The program prepares a link and shows
// it. A person who is logged in opens the link and chooses a game. The program polls, and receives a cloud token.
import Type from 'typebox'
import { GameId, Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Watch, WatchIndex } from '../records.ts'

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
