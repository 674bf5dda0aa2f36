// Device links: how a program without a browser (the CLI) is let in. It prepares a link and shows it; a person who has
// logged in opens it and chooses a game; the program, which has been asking meanwhile, is answered with a cloud token.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object } from '../records.ts'

const DeviceLinkToken = Type.String({ minLength: 1, maxLength: 2048, description: 'As it was prepared.' })

const id = { service: 'api', path: '/cloud/devices/links', rate_limit: 'cloud' } as const

export const prepareDeviceLink = operation({
  ...id,
  id: 'devices.links.prepare',
  method: 'POST',
  summary: 'Prepares a link, which is good for an hour.',
  auth: ['anyone'],
  response: object({
    device_link_id: Id,
    device_link_token: Type.String(),
    device_link_url: Type.String({ description: 'Page on which a person confirms or refuses the link.' }),
  }),
})

export const getDeviceLink = operation({
  ...id,
  id: 'devices.links.get',
  method: 'GET',
  summary: 'Answers the cloud token once the link is complete. With the last watch index, it waits for that a while.',
  auth: ['anyone'],
  query: object({
    device_link_token: DeviceLinkToken,
    watch_index: Type.Optional(
      Type.String({ maxLength: 64, description: 'watch.index of the last answer: wait until there is another.' }),
    ),
  }),
  response: object({
    cloud_token: Type.Optional(Type.String({ description: 'Absent until the link is complete.' })),
    watch: object({ index: Type.String() }),
  }),
  errors: ['CLOUD_DEVICE_LINK_INVALID'],
})

export const completeDeviceLink = operation({
  ...id,
  id: 'devices.links.complete',
  method: 'POST',
  path: '/cloud/devices/links/complete',
  summary: 'Lets the program that prepared the link act for a game.',
  auth: ['admin', 'user'],
  role: 'developer',
  body: object({ device_link_token: DeviceLinkToken, game_id: Id }),
  response: Empty,
  errors: ['CLOUD_DEVICE_LINK_INVALID', 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE', 'GAME_NOT_FOUND'],
})

export const refuseDeviceLink = operation({
  ...id,
  id: 'devices.links.refuse',
  method: 'POST',
  path: '/cloud/devices/links/refuse',
  summary: 'Ends a link that is not complete: the program that prepared it is refused.',
  auth: ['admin', 'user'],
  body: object({ device_link_token: DeviceLinkToken }),
  response: Empty,
  errors: ['CLOUD_DEVICE_LINK_INVALID', 'CLOUD_DEVICE_LINK_ALREADY_COMPLETE'],
})
