import { completeDeviceLink, getDeviceLink, prepareDeviceLink, refuseDeviceLink } from '@muster/contract'
import { completeLink, type DeviceLinks, prepareLink, refuseLink } from '../../cloud/device-links.ts'
import { type Implementation, implement } from '../implement.ts'

export const devices = (links: DeviceLinks): Implementation[] => [
  implement(prepareDeviceLink, ({ ctx }) => prepareLink(ctx)),
  implement(getDeviceLink, ({ query, gone }) => links.get(query, gone)),
  implement(completeDeviceLink, async ({ ctx, caller, body }) => {
    await completeLink(ctx, caller, body)
    return {}
  }),
  implement(refuseDeviceLink, async ({ ctx, body }) => {
    await refuseLink(ctx, body.device_link_token)
    return {}
  }),
]
