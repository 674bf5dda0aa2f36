import {
  completeDeviceLink,
  getDeviceLink,
  inspectDeviceLink,
  prepareDeviceLink,
  refuseDeviceLink,
} from '@musterhost/contract'
import {
  completeLink,
  type DeviceLinks,
  inspectLink,
  prepareLink,
  refuseLink,
} from '../../cloud/tokens/device-links.ts'
import { type Implementation, implement } from '../implement.ts'

export const devices = (links: DeviceLinks): Implementation[] => [
  implement(prepareDeviceLink, ({ ctx, body, client_ip }) => prepareLink(ctx, { name: body?.name, client_ip })),
  implement(inspectDeviceLink, ({ ctx, query }) => inspectLink(ctx, query.device_link_token)),
  implement(getDeviceLink, ({ query, gone }) => links.get(query, gone)),
  implement(completeDeviceLink, ({ ctx, caller, body }) => completeLink(ctx, caller, body)),
  implement(refuseDeviceLink, ({ ctx, body }) => refuseLink(ctx, body.device_link_token)),
]
