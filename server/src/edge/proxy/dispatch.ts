// The edge's HTTP: each request goes where its own Host says, whatever the one before it on the same connection said.
import type { Socket } from 'node:net'
import { ApiError } from '@muster/contract'
import { clientIp, clientKey, forwardedClient, isTrustedPeer, type TrustedProxies } from '../../addresses/client-ip.ts'
import type { OwnAddresses } from '../../addresses/own-addresses.ts'
import type { Cdn } from '../cdn/cdn.ts'
import type { Media } from '../cdn/media.ts'
import { type Guest, PROXY_PEER } from '../connection-limits.ts'
import { type HostMeaning, requireHost, requireHostHeader, requirePath } from '../hosts.ts'
import { answer } from '../http/answer.ts'
import { type Connections, createConnections } from '../http/connections.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import type { Ticks } from '../http/ticks.ts'
import type { PoolLimits } from '../limits.ts'
import type { LobbyConnections } from '../lobby-connections.ts'
import { requireServerName } from '../tls/tls.ts'
import { createArrivingBodies } from './arriving-bodies.ts'
import { createForward } from './forward.ts'
import type { RolePoolLimits } from './pools.ts'
import { openRay } from './rays.ts'
import { createRoles } from './roles.ts'
import { createRouter, type Directory, type Place } from './router.ts'

export type Edge = Directory & {
  ticks: Ticks
  cdn: Cdn
  media: Media
  refuse: Refuse
  lobby_connections: LobbyConnections
  meaningOf: (host: string) => HostMeaning | null
  trusted: TrustedProxies
  own_addresses: OwnAddresses
  limits: HttpLimits
}

export type HttpLimits = { role_pools: RolePoolLimits; arriving_pool: PoolLimits }

export type Dispatch = {
  /** Takes a client's connection from here on. */
  serve: (socket: Socket, guest: Guest) => void
  /** Nothing new is begun; what is under way may end. */
  stop: Connections['close']
  close: () => void
}

export function createDispatch(edge: Edge): Dispatch {
  const { ticks, refuse, lobby_connections } = edge
  const { edge_requests } = edge.ctx.metrics
  const forward = createForward({ ticks, refuse, recorder: edge.ctx.recorder })
  const roles = createRoles(edge.ctx, forward, edge.limits.role_pools)
  const placeOf = createRouter(edge, roles.by_name)
  const bodies = createArrivingBodies({
    ...{ ticks, refuse, pool: edge.limits.arriving_pool },
    large_bytes_per_second_min: edge.ctx.config.uploads.bytes_per_second_min,
  })
  const connections = createConnections({ ticks, refuse, bodies, onRequest, onLost })

  function onRequest(exchange: Exchange): void {
    try {
      arrive(edge, exchange)
      const place = placeOf(exchange)
      if (!(place instanceof Promise)) go(exchange, place)
      else place.then((found) => go(exchange, found)).catch((error: unknown) => refuse.request(exchange, error))
    } catch (error) {
      refuse.request(exchange, error)
    }
  }

  function go(exchange: Exchange, place: Place): void {
    if (exchange.is_over) return
    openRay(edge.ctx, exchange, place)
    edge_requests.inc({ kind: kindOf(place) })
    const lobby = place.kind === 'upstream' ? place.lobby : null
    lobby_connections.follow(exchange.connection, lobby === null ? null : lobby.lobby_id)
    if (place.kind === 'upstream') {
      exchange.path = place.path
      exchange.lobby = place.lobby
      const send = (): void => forward.send(exchange, place.upstream, place.address)
      if (place.lobby === null) bodies.collect(exchange, send)
      else send()
    } else if (place.kind === 'site') edge.cdn.serve(exchange, place)
    else if (place.kind === 'media') edge.media.serve(exchange)
    else if (place.kind === 'text') answerText(exchange, place.text)
    else redirect(exchange, place.location)
  }

  function onLost(exchange: Exchange): void {
    forward.abandon(exchange)
    exchange.onLost?.()
  }

  function close(): void {
    roles.close()
    forward.close()
  }

  return { serve: connections.serve, stop: connections.close, close }
}

/** What the operator calls it: `lobby` or `platform` where it is forwarded. */
function kindOf(place: Place): string {
  if (place.kind !== 'upstream') return place.kind
  return place.lobby === null ? 'platform' : 'lobby'
}

/** Who asks, for what, of whom. Throws API_BAD_REQUEST and API_MISDIRECTED_REQUEST. */
function arrive(edge: Edge, exchange: Exchange): void {
  const { connection, head } = exchange
  // The client was gone before anybody could see who it is: nothing may be counted as somebody else's.
  if (connection.peer === '') throw new ApiError('API_BAD_REQUEST')
  const header = requireHostHeader(head.hosts)
  if (connection.host?.header !== header) {
    const host = requireHost(header)
    requireServerName(connection.socket, host, edge.meaningOf)
    connection.host = { header, host, meaning: edge.meaningOf(host) }
  }
  exchange.path = requirePath(head.target, header)
  exchange.host = connection.host.host
  exchange.meaning = connection.host.meaning
  if (connection.peer === PROXY_PEER) identifyBehindProxy(edge.trusted, exchange)
  else identify(edge, exchange)
}

/** A proxy that the operator trusts speaks for its clients; what anybody else says counts for nothing. */
function identify({ trusted, own_addresses }: Edge, exchange: Exchange): void {
  const { connection, head } = exchange
  const { peer } = connection
  if (connection.client === '') {
    connection.client = clientIp({ peer, forwarded_for: undefined }, trusted)
    connection.source = clientKey(connection.client)
  }
  const { forwarded_for, forwarded_proto } = head
  const is_told =
    (forwarded_for ?? forwarded_proto) !== undefined && isTrustedPeer(peer, trusted) && !own_addresses.has(peer)
  exchange.client = is_told ? clientIp({ peer, forwarded_for }, trusted) : connection.client
  exchange.source = is_told ? clientKey(exchange.client) : connection.source
  if (is_told && forwarded_proto?.toLowerCase() === 'https') exchange.is_secure = true
}

/** Throws API_BAD_REQUEST when the proxy does not say who its client is: the request would be nobody's. */
function identifyBehindProxy(trusted: TrustedProxies, exchange: Exchange): void {
  const { forwarded_for, forwarded_proto } = exchange.head
  const client_ip = forwarded_for === undefined ? null : forwardedClient(forwarded_for, trusted)
  if (client_ip === null) {
    const message = 'A request over MUSTER_EDGE_SOCKET needs X-Forwarded-For with the address of its client.'
    throw new ApiError('API_BAD_REQUEST', {}, { message })
  }
  exchange.client = client_ip
  exchange.source = clientKey(client_ip)
  if (forwarded_proto?.toLowerCase() === 'https') exchange.is_secure = true
}

/** With 308 the method stays what it was. */
function redirect(exchange: Exchange, location: string): void {
  answer(exchange, 308, ['location', location, 'content-length', '0', 'cache-control', 'no-store'], null)
}

function answerText(exchange: Exchange, text: string): void {
  const body = Buffer.from(text)
  const headers = [
    ...['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)],
    ...['cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  ]
  answer(exchange, 200, headers, body)
}
