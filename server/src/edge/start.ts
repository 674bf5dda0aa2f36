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
import { openSiteFiles } from './cdn/site-files.ts'
import { Sites } from './cdn/sites.ts'
import { ConnectionLimits } from './connection-limits.ts'
import { createDomains } from './domains.ts'
import { createHosts } from './hosts.ts'
import { createRefuse } from './http/refuse.ts'
import { createTicks } from './http/ticks.ts'
import { ARRIVING_POOL, ROLE_POOLS } from './limits.ts'
import { openLinks } from './links.ts'
import { LobbyConnections } from './lobby-connections.ts'
import { createLookups } from './lookups.ts'
import { checkNodeInternals } from './node-internals.ts'
import { Players } from './players.ts'
import { createDispatch, type Edge, type HttpLimits } from './proxy/dispatch.ts'
import { Listener } from './proxy/listener.ts'
import { Matchmakers } from './proxy/matchmakers.ts'
import { roleAddresses } from './proxy/router.ts'
import { listenOnProxySocket } from './proxy-socket.ts'
import { reportConnections } from './report-connections.ts'
import { reportTraffic } from './report-traffic.ts'
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
 * Listens on `config.edge_http_port` and, with certificates, on `edge_https_port` (0: any free port), at each address of
 * `edge_hosts`. Rejects with a StartError that names the setting of a port or an address that is not available.
 */
export async function startEdge(ctx: Context, limits: HttpLimits = HTTP_LIMITS): Promise<RunningEdge> {
  await using opened = new AsyncDisposableStack()
  const connection_limits = new ConnectionLimits()
  connection_limits.registerMetrics(ctx.metrics)
  /** Those of the settings, until the servers listen. */
  const ports = { http: ctx.config.edge_http_port, https: ctx.config.edge_https_port }
  const lobby_connections = new LobbyConnections()
  const players = new Players(ctx)
  opened.defer(() => players.close())
  const reports = await reportConnections(ctx, lobby_connections, players)
  opened.defer(() => reports.close())
  const traffic_reports = reportTraffic(ctx, lobby_connections)
  opened.defer(() => traffic_reports.close())
  const edge = await openEdge(ctx, opened, { lobby_connections, players, limits, mainUrl: () => mainUrlOf(ctx, ports) })
  const http = createDispatch(edge)
  opened.defer(() => http.close())
  const listener = new Listener(connection_limits, http, edge.internals)

  // Before HTTP, so that every address that a find returns accepts connections at once, also after a crash.
  const raw_ports = await openPorts(ctx, edge, connection_limits)
  opened.defer(() => raw_ports.close())
  const servers = await listen(ctx, ports.http, () => listener.plain())
  // All servers close together: their requests under way get the same time to end.
  opened.defer(() => listener.close(servers))
  ports.http = portOf(servers[0]!)
  if (edge.certificates !== null) {
    const options = tlsOptions(ctx, edge.certificates.https)
    const secure_servers = await listen(ctx, ports.https, () => listener.secure(options))
    ports.https = portOf(secure_servers[0]!)
    servers.push(...secure_servers)
  }
  if (ctx.config.edge_socket !== null) {
    const server = listener.proxied()
    await listenOnProxySocket(server, ctx.config.edge_socket)
    servers.push(server)
  }
  const https_port = edge.certificates && ports.https
  const { connections_max } = connection_limits
  ctx.log.info({ port: ports.http, https_port, connections_max }, 'the edge listens')
  const closing = opened.move()
  return { address: `http://127.0.0.1:${ports.http}`, https_port, stop: () => closing.disposeAsync() }
}

function mainUrlOf({ config }: Context, ports: { http: number; https: number }): string {
  const advertised = {
    advertised_http_port: config.advertised_http_port || ports.http,
    advertised_https_port: config.advertised_https_port || ports.https,
  }
  return publicUrl({ ...config, ...advertised }, config.domains.main)
}

type EdgeParts = Pick<Edge, 'lobby_connections' | 'players' | 'limits'> & { mainUrl: () => string }

/** Opens what HTTP and the raw ports share. `opened`: closes it. */
async function openEdge(ctx: Context, opened: AsyncDisposableStack, parts: EdgeParts): Promise<Edge> {
  const { lobby_connections, players, limits, mainUrl } = parts
  const internals = await checkNodeInternals(ctx.log)
  const refuse = createRefuse(ctx, mainUrl)
  const lookups = createLookups(ctx)
  const links = await openLinks(ctx)
  opened.defer(() => links.close())
  const meaningOf = createHosts(ctx.config)
  const certificates = await createCertificates(ctx, { meaningOf, lookups })
  opened.defer(() => certificates?.close())
  const sites = new Sites(ctx, lookups)
  const damaged = watchDamaged(ctx)
  opened.defer(() => damaged.close())
  const site_files = openSiteFiles(ctx)
  opened.defer(() => site_files.close())
  const send = createSend(ctx, { lookups, damaged, site_files })
  opened.defer(() => sites.close())
  const edge: Edge = {
    ...{ ctx, internals, refuse, lobby_connections, players, meaningOf, certificates, lookups, links, limits },
    ticks: createTicks(ctx),
    routes: createRoutes(ctx, lookups, links.paths),
    cdn: new Cdn(ctx, { sites, damaged, refuse, send, mainUrl }),
    media: createMedia(ctx, { lookups, refuse, send }),
    domains: createDomains(ctx, lookups),
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
    own_addresses: new OwnAddresses(ctx.elapsed),
    matchmakers: new Matchmakers(ctx, roleAddresses(ctx.config).matchmaker),
  }
  opened.defer(() => edge.matchmakers.close())
  for (const part of [edge.domains, edge.routes, edge.ticks]) opened.defer(() => part.close())
  return edge
}

async function openPorts(ctx: Context, edge: Edge, connection_limits: ConnectionLimits): Promise<EdgePorts> {
  const { host } = ctx.config.edge_ports
  const owners = createPortOwners(ctx, edge.lookups)
  const { routes, certificates, meaningOf, lobby_connections, players } = edge
  const seats = createSeats(ctx)
  const tls = certificates && tlsOptions(ctx, certificates.raw_ports)
  const tcp = new Tcp(ctx, {
    routes,
    meaningOf,
    owners,
    connection_limits,
    lobby_connections,
    players,
    seats,
    tls,
    host,
  })
  const { paths } = edge.links
  const udp = new Udp(ctx, { routes, owners, seats, players, connection_limits, lobby_connections, paths, host })
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

/** Any free port must be free on all addresses of `edge_hosts`. */
const ATTEMPTS_MAX = 8

async function listen(ctx: Context, wanted_port: number, createOne: () => Server): Promise<Server[]> {
  const { edge_hosts } = ctx.config
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = []
    let port = wanted_port
    try {
      for (const host of edge_hosts) {
        const server = createOne()
        if (!(await listenOn(server, port, host ?? undefined))) continue
        servers.push(server)
        port = portOf(server)
      }
      if (servers.length > 0) return servers
      throw new Error(`This machine has no address ${edge_hosts.join(' or ')}; set MUSTER_EDGE_HOST to one of its own.`)
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
