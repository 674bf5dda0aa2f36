// The edge role: the public HTTP, HTTPS and raw ports, in front of all other roles. It keeps no durable state: when it is
// killed, its connections break, and the next edge continues.
import { once } from 'node:events'
import { type AddressInfo, isIPv6, type Server } from 'node:net'
import { parseTrustedProxies } from '../addresses/client-ip.ts'
import { OwnAddresses } from '../addresses/own-addresses.ts'
import { publicUrl } from '../config/addresses.ts'
import type { Context, RunningRole } from '../context.ts'
import { StartError, startSentence } from '../start-error.ts'
import { Cdn } from './cdn/cdn.ts'
import { watchDamaged } from './cdn/damaged.ts'
import { createMedia } from './cdn/media.ts'
import { createSend } from './cdn/send.ts'
import { Sites } from './cdn/sites.ts'
import { ConnectionLimits } from './connection-limits.ts'
import { createDomains } from './domains.ts'
import { createHosts } from './hosts.ts'
import { createRefuse } from './http/refuse.ts'
import { createTicks } from './http/ticks.ts'
import { ARRIVING_POOL, ROLE_POOLS } from './limits.ts'
import { LobbyConnections } from './lobby-connections.ts'
import { createLookups, type Lookups } from './lookups.ts'
import { checkNodeInternals } from './node-internals.ts'
import { createDispatch, type Edge, type HttpLimits } from './proxy/dispatch.ts'
import { Listener } from './proxy/listener.ts'
import { listenOnProxySocket } from './proxy-socket.ts'
import { reportConnections } from './report-connections.ts'
import { createRoutes } from './routes.ts'
import { type EdgePorts, keepPortsOpen } from './streams/edge-ports.ts'
import { createPortOwners } from './streams/port-owners.ts'
import { createSeats } from './streams/seats.ts'
import { Tcp } from './streams/tcp.ts'
import { Udp } from './streams/udp.ts'
import { createCertificates } from './tls/certificates.ts'
import { tlsOptions } from './tls/tls.ts'

const HTTP_LIMITS: HttpLimits = { role_pools: ROLE_POOLS, arriving_pool: ARRIVING_POOL }

/** `https_port`: null where no certificates are configured. */
export type RunningEdge = RunningRole & { https_port: number | null }

/**
 * Listens on `config.edge_http_port` and, with certificates, on `edge_https_port` (0: any free port). In development it
 * listens on loopback, in production on all addresses. Rejects with a StartError that names the setting of a port that is
 * not available.
 */
export async function startEdge(ctx: Context, limits: HttpLimits = HTTP_LIMITS): Promise<RunningEdge> {
  await using opened = new AsyncDisposableStack()
  const connection_limits = new ConnectionLimits()
  connection_limits.registerMetrics(ctx.metrics)
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
  const sites = new Sites(ctx, lookups)
  const damaged = watchDamaged(ctx)
  opened.defer(() => damaged.close())
  const send = createSend(ctx, { lookups, damaged })
  opened.defer(() => sites.close())
  const edge: Edge = {
    ctx,
    ticks: createTicks(ctx),
    internals: await checkNodeInternals(ctx.log),
    routes: createRoutes(ctx, lookups),
    cdn: new Cdn(ctx, { sites, damaged, refuse, send, mainUrl }),
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
  const listener = new Listener(connection_limits, http, edge.internals)

  // Before HTTP, so that every address that a find returns accepts connections at once, also after a crash.
  const ports = await openPorts(ctx, edge, connection_limits, lookups)
  opened.defer(() => ports.close())
  const servers = await listen(ctx, http_port, () => listener.plain())
  opened.defer(() => listener.close(servers))
  http_port = portOf(servers[0]!)
  if (certificates !== null) {
    const options = tlsOptions(ctx, certificates.https)
    const secure_servers = await listen(ctx, https_port, () => listener.secure(options))
    https_port = portOf(secure_servers[0]!)
    // All servers close together: their requests under way get the same time to end.
    servers.push(...secure_servers)
  }
  if (ctx.config.edge_socket !== null) {
    const server = listener.proxied()
    await listenOnProxySocket(server, ctx.config.edge_socket)
    servers.push(server)
  }
  ctx.log.info(
    { port: http_port, https_port: certificates && https_port, connections_max: connection_limits.connections_max },
    'the edge listens',
  )
  const closing = opened.move()
  return {
    address: `http://127.0.0.1:${http_port}`,
    https_port: certificates && https_port,
    stop: () => closing.disposeAsync(),
  }
}

async function openPorts(
  ctx: Context,
  edge: Edge,
  connection_limits: ConnectionLimits,
  lookups: Lookups,
): Promise<EdgePorts> {
  const { host } = ctx.config.edge_ports
  const owners = createPortOwners(ctx, lookups)
  const { routes, certificates, meaningOf, lobby_connections } = edge
  const tls = certificates && tlsOptions(ctx, certificates.raw_ports)
  const tcp = new Tcp(ctx, { routes, meaningOf, owners, connection_limits, lobby_connections, tls, host })
  const seats = createSeats(ctx)
  const udp = new Udp(ctx, { routes, owners, seats, connection_limits, lobby_connections, host })
  const ports = await keepPortsOpen(ctx, owners, {
    tcp: (port) => tcp.open(port),
    udp: (port) => udp.open(port),
  })
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

/** Resolves with false when this machine does not have the address. */
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
