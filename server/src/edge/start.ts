// The edge role: the public HTTP and HTTPS ports, in front of everything. It holds nothing that lasts: killed, it loses
// the connections that went through it, and the next one is as good.

import { once } from 'node:events'
import { type AddressInfo, isIPv6, type Server } from 'node:net'
import { parseTrustedProxies } from '../addresses/client-ip.ts'
import { OwnAddresses } from '../addresses/own-addresses.ts'
import { publicUrl } from '../config/addresses.ts'
import type { Context, RunningRole } from '../context.ts'
import { StartError, startSentence } from '../start-error.ts'
import { createCdn } from './cdn/cdn.ts'
import { watchDamaged } from './cdn/damaged.ts'
import { createMedia } from './cdn/media.ts'
import { createSend } from './cdn/send.ts'
import { createSites } from './cdn/sites.ts'
import { type ConnectionLimits, createConnectionLimits } from './connection-limits.ts'
import { createDomains } from './domains.ts'
import { createHosts } from './hosts.ts'
import { createRefuse } from './http/refuse.ts'
import { createTicks } from './http/ticks.ts'
import { ARRIVING_POOL, ROLE_POOLS } from './limits.ts'
import { LobbyConnections } from './lobby-connections.ts'
import { createLookups, type Lookups } from './lookups.ts'
import { createDispatch, type Edge, type HttpLimits } from './proxy/dispatch.ts'
import { createListener } from './proxy/listener.ts'
import { listenOnProxySocket } from './proxy-socket.ts'
import { reportConnections } from './report-connections.ts'
import { createRoutes } from './routes.ts'
import { type EdgePorts, keepPortsOpen } from './streams/edge-ports.ts'
import { createPortOwners } from './streams/port-owners.ts'
import { createSeats } from './streams/seats.ts'
import { createTcp } from './streams/tcp.ts'
import { createUdp } from './streams/udp.ts'
import { createCertificates } from './tls/certificates.ts'
import { tlsOptions } from './tls/tls.ts'

const HTTP_LIMITS: HttpLimits = { role_pools: ROLE_POOLS, arriving_pool: ARRIVING_POOL }

/** `https_port` is null where nothing says which certificates the edge has. */
export type RunningEdge = RunningRole & { https_port: number | null }

/**
 * Listens on `config.edge_http_port` and, with certificates, on `edge_https_port` (0: any): on loopback in development,
 * on all addresses in production. Rejects with a StartError that names the setting of a port that cannot be had.
 */
export async function startEdge(ctx: Context, limits: HttpLimits = HTTP_LIMITS): Promise<RunningEdge> {
  await using opened = new AsyncDisposableStack()
  const crowd = createConnectionLimits()
  crowd.tell(ctx.metrics)
  let { edge_http_port: http_port, edge_https_port: https_port } = ctx.config
  const mainUrl = () => {
    const ports = {
      advertised_http_port: ctx.config.advertised_http_port || http_port,
      advertised_https_port: ctx.config.advertised_https_port || https_port,
    }
    return publicUrl({ ...ctx.config, ...ports }, ctx.config.domains.main)
  }
  const lobby_connections = new LobbyConnections()
  const reports = await reportConnections(ctx, lobby_connections)
  opened.defer(() => reports.close())
  const refuse = createRefuse(ctx, mainUrl)
  const lookups = createLookups(ctx)
  const meaningOf = createHosts(ctx.config)
  const certificates = await createCertificates(ctx, { meaningOf, lookups })
  opened.defer(() => certificates?.close())
  const sites = createSites(ctx, lookups)
  const damaged = watchDamaged(ctx)
  opened.defer(() => damaged.close())
  const send = createSend(ctx, { lookups, damaged })
  opened.defer(() => sites.close())
  const edge: Edge = {
    ctx,
    ticks: createTicks(ctx),
    routes: createRoutes(ctx, lookups),
    cdn: createCdn(ctx, { sites, damaged, refuse, send, mainUrl }),
    media: createMedia(ctx, { lookups, refuse, send }),
    domains: createDomains(ctx, lookups),
    refuse,
    lobby_connections,
    meaningOf,
    certificates,
    lookups,
    limits,
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
    own_addresses: new OwnAddresses(ctx.elapsed),
  }
  for (const part of [edge.domains, edge.routes, edge.ticks]) opened.defer(() => part.close())
  const http = createDispatch(edge)
  opened.defer(() => http.close())
  const door = createListener(crowd, http)

  // Before HTTP, over which addresses are found: those are good at once, also after a crash.
  const ports = await openPorts(ctx, edge, crowd, lookups)
  opened.defer(() => ports.close())
  const servers = await listen(ctx, http_port, door.plain)
  opened.defer(() => door.close(servers))
  http_port = portOf(servers[0]!)
  if (certificates !== null) {
    const options = tlsOptions(ctx, certificates.https)
    const secure_servers = await listen(ctx, https_port, () => door.secure(options))
    https_port = portOf(secure_servers[0]!)
    // All at once: what is under way on either has the same time to end.
    servers.push(...secure_servers)
  }
  if (ctx.config.edge_socket !== null) {
    const server = door.proxied()
    await listenOnProxySocket(server, ctx.config.edge_socket)
    servers.push(server)
  }
  ctx.log.info(
    { port: http_port, https_port: certificates && https_port, connections_max: crowd.connections_max },
    'the edge listens',
  )
  const closing = opened.move()
  return {
    address: `http://127.0.0.1:${http_port}`,
    https_port: certificates && https_port,
    stop: () => closing.disposeAsync(),
  }
}

async function openPorts(ctx: Context, edge: Edge, crowd: ConnectionLimits, lookups: Lookups): Promise<EdgePorts> {
  const { host } = ctx.config.edge_ports
  const owners = createPortOwners(ctx, lookups)
  const { routes, certificates, meaningOf, lobby_connections } = edge
  const tls = certificates && tlsOptions(ctx, certificates.raw_ports)
  const tcp = createTcp(ctx, { routes, meaningOf, owners, crowd, lobby_connections, tls, host })
  const seats = createSeats(ctx)
  const udp = createUdp(ctx, { routes, owners, seats, crowd, lobby_connections, host })
  const ports = await keepPortsOpen(ctx, owners, { tcp: tcp.open, udp: udp.open })
  return {
    async close() {
      await ports.close()
      udp.close()
    },
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

const LOOPBACK = ['127.0.0.1', '::1']
/** Any free port must be free on both loopback addresses. */
const ATTEMPTS_MAX = 8

async function listen(ctx: Context, wanted_port: number, createOne: () => Server): Promise<Server[]> {
  const { mode } = ctx.config
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = []
    let port = wanted_port
    try {
      for (const host of mode === 'development' ? LOOPBACK : [undefined]) {
        const server = createOne()
        if (!(await listenOn(server, port, host))) continue
        servers.push(server)
        port = portOf(server)
      }
      return servers
    } catch (error) {
      for (const server of servers) server.close()
      const is_taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (wanted_port === 0 && is_taken && attempt < ATTEMPTS_MAX) continue
      throw new StartError(startSentence(error, ctx.config), { cause: error })
    }
  }
}

/** False when this machine has no such address. */
async function listenOn(server: Server, port: number, host: string | undefined): Promise<boolean> {
  const listening = once(server, 'listening')
  server.listen({ port, host, backlog: 1024 })
  try {
    await listening
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (host !== undefined && isIPv6(host) && (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')) return false
    throw error
  }
}
