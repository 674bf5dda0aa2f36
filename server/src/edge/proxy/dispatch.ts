// The edge's HTTP. Each request goes where its own Host header says, whatever earlier requests of its connection said.
import type { Socket } from 'node:net'
import { ApiError } from '@musterhost/contract'
import { HttpAdmission } from '@musterhost/contract/edge'
import { clientIp, clientKey, forwardedClient, isTrustedPeer, type TrustedProxies } from '../../addresses/client-ip.ts'
import type { OwnAddresses } from '../../addresses/own-addresses.ts'
import type { UnnamedProxies } from '../../addresses/unnamed-proxies.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import type { Cdn } from '../cdn/cdn.ts'
import type { Media } from '../cdn/media.ts'
import { Connections, type IdleConnection } from '../http/connections.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { sendResponse } from '../http/response.ts'
import type { Ticks } from '../http/ticks.ts'
import { Http2Sessions } from '../http2/sessions.ts'
import type { PoolLimits } from '../limits.ts'
import type { NodeInternals } from '../node-internals.ts'
import { type AdmittedConnection, PROXY_PEER } from '../presence/connection-limits.ts'
import type { Flows } from '../presence/flows.ts'
import type { LobbyConnections } from '../presence/lobby-connections.ts'
import type { MachineEdges } from '../presence/machine-edges.ts'
import type { Players } from '../presence/players.ts'
import { type HostMeaning, requireHost, requireHostHeader, requirePath } from '../routes/hosts.ts'
import type { SharedCounts } from '../shared-counts.ts'
import { breakOff, isHttp2, requireServerName } from '../tls/tls.ts'
import { ArrivingBodies } from './arriving-bodies.ts'
import { Forwarder } from './forward.ts'
import { sendPing } from './ping.ts'
import type { RolePoolLimits } from './pools.ts'
import { openRay } from './rays.ts'
import { createRoles } from './roles.ts'
import { createRouter, type Directory, type RouteTarget } from './router.ts'

export type Edge = Directory & {
  ticks: Ticks
  internals: NodeInternals
  cdn: Cdn
  media: Media
  refuse: Refuse
  lobby_connections: LobbyConnections
  flows: Flows
  players: Players
  meaningOf: (host: string) => HostMeaning | null
  trusted: TrustedProxies
  own_addresses: OwnAddresses
  unnamed_proxies: UnnamedProxies
  limits: HttpLimits
  /** Null: this process is the only edge of the machine. */
  shared: SharedCounts | null
  machine_edges: MachineEdges | null
}

export type HttpLimits = { role_pools: RolePoolLimits; arriving_pool: PoolLimits }

export type Dispatch = {
  /** Serves HTTP over a client's connection. `lobby_id`: where its last request went, through another edge; null: to none. */
  serve: (socket: Socket, admitted: AdmittedConnection, lobby_id: string | null) => void
  /** The connections that wait for a request, and may wait in another process. */
  idle: () => IdleConnection[]
  /** Each connection ends after its next response. */
  retire: () => void
  /** Begins no new request. Requests under way may end. */
  stop: () => void
  close: () => void
}

export function createDispatch(edge: Edge): Dispatch {
  const { ticks, internals, refuse, lobby_connections, flows } = edge
  const { edge_requests } = edge.ctx.metrics
  const { recorder, keys } = edge.ctx
  const forwarder = new Forwarder({ ticks, internals, refuse, flows, recorder, proof: edgeProof(keys) })
  edge.matchmakers.onUnreachable = (address) => forwarder.drop(address)
  const targetOf = createRouter(edge, createRoles(edge.ctx, edge.limits.role_pools, edge.shared))
  const bodies = new ArrivingBodies({
    ...{ ticks, refuse, pool: edge.limits.arriving_pool, shared: edge.shared?.of('arriving') ?? null },
    large_bytes_per_second_min: edge.ctx.config.uploads.bytes_per_second_min,
  })
  const admission = new HttpAdmission<Exchange>({
    players: edge.players,
    endWebSockets: async (player_id, port_name) => {
      const ended = { player_id, number: null, port_name }
      await Promise.all([flows.endOf(player_id, ended), edge.machine_edges?.endOf(ended)])
    },
    breakOff,
    connectionOf: (exchange, player) => exchange.connection.visits?.ofPlayer(exchange, player) ?? exchange.connection,
    sendPreflight: (exchange, headers) => sendResponse(exchange, 204, headers, null),
  })
  const connections = new Connections({ ticks, refuse, bodies, onRequest })
  const http2 = new Http2Sessions({ ticks, connections, shared: edge.shared?.of('http2 bodies') ?? null })

  function onRequest(exchange: Exchange): void {
    try {
      identifyRequest(edge, exchange)
      const target = targetOf(exchange)
      if (!(target instanceof Promise)) respond(exchange, target)
      else target.then((found) => respond(exchange, found)).catch((error: unknown) => refuse.request(exchange, error))
    } catch (error) {
      refuse.request(exchange, error)
    }
  }

  function respond(exchange: Exchange, target: RouteTarget): void {
    if (exchange.is_over) return
    openRay(edge.ctx, exchange, target)
    edge_requests.inc({ kind: kindOf(target) })
    const lobby = target.kind === 'backend' ? target.lobby : null
    followLobby(lobby_connections, exchange, lobby === null ? null : lobby.lobby_id)
    if (target.kind === 'backend') {
      exchange.path = target.path
      exchange.lobby = target.lobby
      const send = (address = target.address): void => forwarder.send(exchange, target.backend, address)
      if (target.lobby === null) bodies.collect(exchange, () => send())
      else if (target.address.admission === undefined) send()
      else {
        admission
          .admit(exchange, target.lobby, { ...target.address, admission: target.address.admission })
          .then((address) => address === null || exchange.is_over || send(address))
          .catch((error: unknown) => exchange.is_over || refuse.request(exchange, error))
      }
    } else if (target.kind === 'site') edge.cdn.serve(exchange, target)
    else if (target.kind === 'media') edge.media.serve(exchange, target.path)
    else if (target.kind === 'text') sendText(exchange, target.text)
    else if (target.kind === 'status') edge.status_pages.serve(exchange, target)
    else if (target.kind === 'ping') sendPing(exchange, refuse)
    else redirect(exchange, target.location)
  }

  return {
    serve(socket, admitted, lobby_id) {
      if (isHttp2(socket)) http2.serve(socket, admitted)
      else lobby_connections.follow(connections.serve(socket, admitted), lobby_id)
    },
    idle: () => connections.idle(),
    retire() {
      connections.retire()
      http2.retire()
    },
    stop() {
      connections.close()
      http2.retire()
    },
    close() {
      forwarder.close()
    },
  }
}

/** A connection counts for the lobby of its last request. Over HTTP/2 it counts for each lobby for a while. */
function followLobby(counts: LobbyConnections, exchange: Exchange, lobby_id: string | null): void {
  const { connection } = exchange
  if (connection.visits === null) counts.follow(connection, lobby_id)
  else if (lobby_id !== null) counts.follow(connection.visits.ofLobby(exchange, lobby_id), lobby_id)
}

/** The value of the metric's `kind` label: `lobby` or `platform` for a forwarded request. */
function kindOf(target: RouteTarget): string {
  if (target.kind !== 'backend') return target.kind
  return target.lobby === null ? 'platform' : 'lobby'
}

/** Sets the host, the path and the client of a request. Throws API_BAD_REQUEST and API_MISDIRECTED_REQUEST. */
function identifyRequest(edge: Edge, exchange: Exchange): void {
  const { connection, head } = exchange
  // The client was gone before its address could be read: the request must not be counted as another client's.
  if (connection.peer === '') throw new ApiError('API_BAD_REQUEST')
  const header = requireHostHeader(head.hosts)
  if (connection.host?.header !== header) {
    const host = requireHost(header)
    requireServerName(connection, host, edge.meaningOf)
    connection.host = { header, host, meaning: edge.meaningOf(host) }
  }
  exchange.path = requirePath(head.target, header)
  exchange.host = connection.host.host
  exchange.meaning = connection.host.meaning
  if (connection.peer === PROXY_PEER) identifyBehindProxy(edge.trusted, exchange)
  else identifyClient(edge, exchange)
}

/** Only a proxy that the operator trusts may name the client; X-Forwarded-For of every other peer is ignored. */
function identifyClient({ trusted, own_addresses, unnamed_proxies }: Edge, exchange: Exchange): void {
  const { connection, head } = exchange
  const { peer } = connection
  if (connection.client_ip === '') {
    connection.client_ip = clientIp({ peer, forwarded_for: undefined }, trusted)
    connection.client_key = clientKey(connection.client_ip)
  }
  const { forwarded_for, forwarded_proto } = head
  const is_forwarded =
    (forwarded_for ?? forwarded_proto) !== undefined && isTrustedPeer(peer, trusted) && !own_addresses.has(peer)
  exchange.client_ip = is_forwarded ? clientIp({ peer, forwarded_for }, trusted) : connection.client_ip
  exchange.client_key = is_forwarded ? clientKey(exchange.client_ip) : connection.client_key
  if (is_forwarded && forwarded_proto?.toLowerCase() === 'https') exchange.is_secure = true
  if (!is_forwarded && forwarded_for !== undefined) unnamed_proxies.note(connection.client_ip, forwarded_for)
}

/** Throws API_BAD_REQUEST when the proxy does not name its client: the request could not be counted. */
function identifyBehindProxy(trusted: TrustedProxies, exchange: Exchange): void {
  const { forwarded_for, forwarded_proto } = exchange.head
  const client_ip = forwarded_for === undefined ? null : forwardedClient(forwarded_for, trusted)
  if (client_ip === null) {
    const message = 'A request over MUSTER_EDGE_SOCKET needs X-Forwarded-For with the address of its client.'
    throw new ApiError('API_BAD_REQUEST', {}, { message })
  }
  exchange.client_ip = client_ip
  exchange.client_key = clientKey(client_ip)
  if (forwarded_proto?.toLowerCase() === 'https') exchange.is_secure = true
}

/** A client that follows a 308 repeats the request with the same method. */
function redirect(exchange: Exchange, location: string): void {
  sendResponse(exchange, 308, ['location', location, 'content-length', '0', 'cache-control', 'no-store'], null)
}

function sendText(exchange: Exchange, text: string): void {
  const body = Buffer.from(text)
  const headers = [
    ...['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)],
    ...['cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  ]
  sendResponse(exchange, 200, headers, body)
}
