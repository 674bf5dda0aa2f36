// What a Multiplay server starts with: the file server.json in its home.
import { createHash } from 'node:crypto'
import type { LobbyFacts, LobbyPort } from '../lobby.ts'
import type { Endpoints, ProgramAdditions, ProtocolOptions } from '../protocol.ts'

/** Bits of a server id: JSON readers that know only double precision read it exactly. */
const SERVER_ID_BITS = 48
const QUERY_PORT_NAME = 'query'

export type QueryType = 'sqp' | 'a2s'

/** The same for a lobby in every process of the platform, and never 0. */
export function serverId(lobby_id: string): number {
  return (
    createHash('sha256')
      .update(lobby_id)
      .digest()
      .readUIntBE(0, SERVER_ID_BITS / 8) + 1
  )
}

/** The port at which the platform asks for the players; null: the version config has none of this name. */
export function queryPort({ ports }: LobbyFacts): number | null {
  return ports.find(({ name, protocol }) => name === QUERY_PORT_NAME && protocol === 'udp')?.listening ?? null
}

export function queryType({ metadata }: ProtocolOptions): QueryType {
  return metadata?.queryType === 'a2s' ? 'a2s' : 'sqp'
}

/** A lobby starts for an allocation, so its server has one from the start. Each value is a text: Unreal reads no numbers. */
export function multiplayAdditions(
  facts: LobbyFacts,
  endpoints: Endpoints,
  options: ProtocolOptions,
): ProgramAdditions {
  const { proxy } = endpoints
  if (proxy === undefined) throw new Error('The endpoint `proxy` is missing.')
  const first = facts.ports[0]
  const url = `http://${proxy.host}:${proxy.port}`
  const server = {
    ip: first?.public.hostname ?? '',
    ipv6: '',
    machineID: '1',
    fleetID: facts.version_id,
    regionID: facts.region_id,
    regionName: facts.region_id,
    enableBackfill: 'false',
    ...options.metadata,
    serverID: String(serverId(facts.lobby_id)),
    allocatedUUID: facts.lobby_id,
    port: listeningOf(first),
    queryPort: String(queryPort(facts) ?? listeningOf(first)),
    queryType: queryType(options),
    serverLogDir: facts.home,
    localProxyUrl: url,
    matchmakerUrl: url,
  }
  return {
    env: {},
    files: [{ path: 'server.json', content: `${JSON.stringify(server, null, 2)}\n` }],
  }
}

function listeningOf(port: LobbyPort | undefined): string {
  return String(port?.listening ?? 0)
}
