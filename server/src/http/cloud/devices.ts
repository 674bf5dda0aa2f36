import { completeDeviceLink, getDeviceLink, prepareDeviceLink } from '@muster/contract'
import { completeLink, type DeviceLinks, prepareLink } from '../../cloud/device-links.ts'
import { type Implementation, implement } from '../implement.ts'

export const devices = (links: DeviceLinks): Implementation[] => [
  implement(prepareDeviceLink, ({ ctx }) => prepareLink(ctx)),
  implement(getDeviceLink, ({ query, gone }) => links.get(query, gone)),
  implement(completeDeviceLink, async ({ ctx, caller, body }) => {
    await completeLink(ctx, caller, body)
    return {}
  }),
]
