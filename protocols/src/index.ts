// The protocols by name. Each is loaded when a lobby needs it.
import type { ProtocolName } from '@musterhost/contract'
import type { Protocol } from './protocol.ts'

export type * from './lobby.ts'
export * from './protocol.ts'

const LOADERS: Record<ProtocolName, () => Promise<Protocol>> = {
  agones: async () => (await import('./agones/agones.ts')).agones,
  multiplay: async () => (await import('./multiplay/multiplay.ts')).multiplay,
  gsdk: async () => (await import('./gsdk/gsdk.ts')).gsdk,
  gamelift: async () => (await import('./gamelift/gamelift.ts')).gamelift,
}

export function loadProtocol(name: ProtocolName): Promise<Protocol> {
  return LOADERS[name]()
}
