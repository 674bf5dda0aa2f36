// The edge role: the public HTTP, HTTPS and raw ports, in front of all other roles. It keeps no durable state: when it is
// killed, its connections break, and the next edge continues.
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { type AddressInfo, isIPv6, type Server } from 'node:net'
import { join } from 'node:path'
import { StreamAdmission } from '@musterhost/contract/edge'
import { parseTrustedProxies } from '../addresses/client-ip.ts'
import { OwnAddresses } from '../addresses/own-addresses.ts'
import { publicUrl } from '../config/addresses.ts'
import { instanceName } from '../config/processes.ts'
import { StartError, startSentence } from '../config/start-error.ts'
import type { Context, RunningRole } from '../context.ts'
import { Cdn } from './cdn/cdn.ts'
import { watchDamaged } from './cdn/damaged.ts'
import { createMedia } from './cdn/media.ts'
import { createSend } from './cdn/send.ts'
import { openSiteFiles } from './cdn/site-files.ts'
import { Sites } from './cdn/sites.ts'
import { HandOverOffer } from './hand-over/give.ts'
import type { Inheritance } from './hand-over/inheritance.ts'
import type { ListenerFacts, ListenerName } from './hand-over/messages.ts'
import { Predecessor } from './hand-over/take.ts'
import { createRefuse } from './http/refuse.ts'
import { createTicks } from './http/ticks.ts'
import { ARRIVING_POOL, ROLE_POOLS, SOCKET_PATH_BYTES_MAX } from './limits.ts'
import { openLinks } from './links.ts'
import { checkNodeInternals } from './node-internals.ts'
import { ConnectionLimits } from './presence/connection-limits.ts'
import { Flows } from './presence/flows.ts'
import { LobbyConnections } from './presence/lobby-connections.ts'
import { MachineEdges } from './presence/machine-edges.ts'
import { Players } from './presence/players.ts'
import { reportConnections } from './presence/report-connections.ts'
import { reportUnnamedProxies } from './presence/report-proxies.ts'
import { reportTraffic } from './presence/report-traffic.ts'
import { createDispatch, type Edge, type HttpLimits } from './proxy/dispatch.ts'
import { HttpListener } from './proxy/listener.ts'
import { Matchmakers } from './proxy/matchmakers.ts'
import { roleAddresses } from './proxy/router.ts'
import { listenOnProxySocket } from './proxy-socket.ts'
import { createDomains } from './routes/domains.ts'
import { createHosts } from './routes/hosts.ts'
import { createLookups } from './routes/lookups.ts'
import { createRoutes } from './routes/routes.ts'
import { SharedCounts } from './shared-counts.ts'
import { openStatusPages } from './status/pages.ts'
import { keepPortsOpen } from './streams/edge-ports.ts'
import { openPingEcho } from './streams/ping-echo.ts'
import { PortConnectionLimits } from './streams/port-connection-limits.ts'
import { createPortOwners } from './streams/port-owners.ts'
import { createSeats, type Seats } from './streams/seats.ts'
import { Tcp } from './streams/tcp.ts'
import { Udp } from './streams/udp.ts'
import { createCertificates } from './tls/certificates.ts'
import { tlsOptions } from './tls/tls.ts'

const HTTP_LIMITS: HttpLimits = { role_pools: ROLE_POOLS, arriving_pool: ARRIVING_POOL }

/** `https_port`: null where no certificates are configured. */
export type RunningEdge = RunningRole & { https_port: number | null }

/**
 * Listens on `config.edge_http_port` and, with certificates, on `edge_https_port` (0: any free port), at each address of
 * `edge_hosts`. Where an edge of this data folder lives, its listeners and connections are taken over. Rejects with a
 * StartError that names the setting of a port or an address that is not available.
 */
export async function startEdge(ctx: Context, limits: HttpLimits = HTTP_LIMITS): Promise<RunningEdge> {
  await using opened = new AsyncDisposableStack()
  const socket_path = handOverPath(ctx)
  const predecessor = socket_path === null ? null : await Predecessor.find(ctx, socket_path)
  opened.defer(() => predecessor?.close())
  /** Ports of the settings, until the servers listen; then the ports at which they listen. */
  const ports = { http: ctx.config.edge_http_port, https: ctx.config.edge_https_port }
  const parts = await openEdge(ctx, opened, {
    limits,
    mainUrl: () => mainUrlOf(ctx, ports),
    is_successor: predecessor !== null,
  })
  const { edge, listener, tcp, udp, owners, reports } = await openStreams(ctx, opened, parts, predecessor)

  edge.machine_edges = await MachineEdges.open(ctx, {
    end: ({ player_id, ...port }) => edge.flows.endOf(player_id, port),
    addressesOf: (player) => edge.players.addressesOf(player),
  })
  edge.players.machine_edges = edge.machine_edges
  opened.defer(() => edge.machine_edges?.close())
  // Before HTTP, so that every address that a find returns accepts connections at once, also after a crash.
  const raw_ports = await keepPortsOpen(ctx, owners, {
    tcp: (port) => tcp.open(port, predecessor?.inheritance.takePort(port)),
    udp: (port) => udp.open(port),
    followAddresses: () => udp.followAddresses(),
  })
  opened.defer(async () => {
    await raw_ports.close()
    udp.close()
  })
  const echo = openPingEcho(ctx)
  opened.defer(() => echo.close())
  const inherited = predecessor?.inheritance ?? null
  const proxied: Server[] = []
  const allServers = (): Server[] => [...listeners.map(({ server }) => server), ...proxied]
  const listeners = await listen(ctx, { name: 'http', port: ports.http, create: () => listener.plain() }, inherited)
  // All servers close together: their requests under way get the same time to end.
  opened.defer(() => listener.close(allServers()))
  ports.http = portOf(listeners[0]!.server)
  if (edge.certificates !== null) {
    const { https, tickets } = edge.certificates
    const options = tlsOptions(ctx, https)
    const create = () => tickets.keep(listener.secure(options))
    const secure = { name: 'https' as const, port: ports.https, create }
    const secure_listeners = await listen(ctx, secure, inherited)
    ports.https = portOf(secure_listeners[0]!.server)
    listeners.push(...secure_listeners)
  }
  if (ctx.config.edge_socket !== null) {
    // The edge before this one has removed its file with its last descriptor, so the socket is a new one.
    const server = listener.proxied()
    await listenOnProxySocket(server, ctx.config.edge_socket)
    proxied.push(server)
  }
  edge.links.announce()
  if (edge.shared !== null) edge.shared.is_taking = false
  inherited?.close()
  void predecessor?.follow({ flows: edge.flows, udp, listener, players: edge.players })

  const offer =
    socket_path === null
      ? null
      : new HandOverOffer(ctx, socket_path, {
          ...{ listeners, raw_ports, udp, reports, flows: edge.flows, idle: () => listener.idle() },
          stopAccepting() {
            echo.close()
            for (const port of raw_ports.open('tcp').values()) port.release()
            listener.retire(allServers())
            edge.links.retire()
          },
          openCount() {
            const { links, flows } = edge
            // Links last as long as this edge: they do not keep it.
            const own_count = links.is_end ? flows.link_count : 0
            return parts.connection_limits.open_count - own_count + links.carriedCount()
          },
          end: () => edge.links.close(),
        })
  opened.defer(() => offer?.close())
  const https_port = edge.certificates && ports.https
  const { connections_max } = parts.connection_limits
  ctx.log.info({ port: ports.http, https_port, connections_max }, 'the edge listens')
  const closing = opened.move()
  return {
    address: `http://127.0.0.1:${ports.http}`,
    https_port,
    ...(offer !== null && { handed_over: offer.handed_over, retired: offer.retired }),
    stop: () => closing.disposeAsync(),
  }
}

function mainUrlOf({ config }: Context, ports: { http: number; https: number }): string {
  const advertised = {
    advertised_http_port: config.advertised_http_port || ports.http,
    advertised_https_port: config.advertised_https_port || ports.https,
  }
  return publicUrl({ ...config, ...advertised }, config.domains.main)
}

type EdgeParts = {
  edge: Edge
  connection_limits: ConnectionLimits
  port_limits: PortConnectionLimits
  admission: StreamAdmission
  seats: Seats
}

/** Opens what HTTP and the raw ports share. `opened`: closes it. */
async function openEdge(
  ctx: Context,
  opened: AsyncDisposableStack,
  { limits, mainUrl, is_successor }: { limits: HttpLimits; mainUrl: () => string; is_successor: boolean },
): Promise<EdgeParts> {
  const { count } = ctx.config.process
  const shared = SharedCounts.open(join(ctx.config.data_dir, 'edge', 'counts'), {
    count,
    is_successor,
    log: ctx.log,
    now: ctx.now,
  })
  opened.defer(() => shared?.close())
  const connection_limits = new ConnectionLimits()
  connection_limits.registerMetrics(ctx.metrics)
  const lobby_connections = new LobbyConnections()
  const players = new Players(ctx, shared?.of('player connections') ?? null)
  opened.defer(() => players.close())
  const seats = createSeats(ctx)
  const admission = new StreamAdmission(players, seats, lobby_connections)
  const port_limits = new PortConnectionLimits()
  const flows = new Flows({ connection_limits, lobby_connections, port_limits, admission, players })
  const internals = await checkNodeInternals(ctx.log)
  const refuse = createRefuse(ctx, mainUrl)
  const lookups = createLookups(ctx, shared?.of('failed look-ups') ?? null)
  const links = await openLinks(ctx, { is_successor, routes: () => edge.routes })
  opened.defer(() => links.close())
  const meaningOf = createHosts(ctx.config)
  const certificates = await createCertificates(ctx, { meaningOf, lookups })
  opened.defer(() => certificates?.close())
  const sites = new Sites(ctx, lookups)
  const damaged = watchDamaged(ctx)
  opened.defer(() => damaged.close())
  const site_files = openSiteFiles(ctx)
  opened.defer(() => site_files.close())
  const send = createSend(ctx, { lookups, damaged, site_files, shared })
  opened.defer(() => sites.close())
  const edge: Edge = {
    ...{ ctx, internals, refuse, lobby_connections, players, flows, meaningOf, certificates, lookups, links, limits },
    ...{ shared, machine_edges: null },
    ticks: createTicks(ctx),
    routes: createRoutes(ctx, lookups, links.paths),
    cdn: new Cdn(ctx, { sites, damaged, refuse, send, mainUrl }),
    media: createMedia(ctx, { lookups, refuse, send }),
    domains: createDomains(ctx, lookups),
    status_pages: openStatusPages(ctx, refuse),
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
    own_addresses: new OwnAddresses(ctx.elapsed),
    unnamed_proxies: reportUnnamedProxies(ctx),
    matchmakers: new Matchmakers(ctx, roleAddresses(ctx.config).matchmaker),
  }
  opened.defer(() => edge.matchmakers.close())
  for (const part of [edge.domains, edge.routes, edge.status_pages, edge.ticks]) opened.defer(() => part.close())
  return { edge, connection_limits, port_limits, admission, seats }
}

/** What carries connections. It is registered before it accepts any, with all that the edge before handed over. */
async function openStreams(
  ctx: Context,
  opened: AsyncDisposableStack,
  { edge, connection_limits, port_limits, admission, seats }: EdgeParts,
  predecessor: Predecessor | null,
) {
  const { routes, certificates, meaningOf, lobby_connections, players, flows } = edge
  const { host } = ctx.config.edge_ports
  const http = createDispatch(edge)
  opened.defer(() => http.close())
  const listener = new HttpListener(connection_limits, http, edge.internals)
  const owners = createPortOwners(ctx, edge.lookups)
  const carried = { routes, owners, connection_limits, lobby_connections, host, admission }
  const tls = certificates && {
    options: tlsOptions(ctx, certificates.raw_ports),
    tickets: certificates.tickets,
  }
  const tcp = new Tcp(ctx, { ...carried, meaningOf, port_limits, flows, tls })
  const udp = new Udp(ctx, { ...carried, seats, players, paths: edge.links.paths, shared: edge.shared })
  const heir = { flows, udp, listener, players }
  // Sessions at ports without a known owner would be ended.
  if (predecessor !== null) await owners.read()
  if (predecessor !== null && !(await predecessor.receive(heir))) throw new Error('The edge before this one has ended.')
  const reports = await reportConnections(ctx, lobby_connections, { players, is_successor: predecessor !== null })
  opened.defer(() => reports.close())
  opened.defer(() => flows.close())
  const traffic_reports = reportTraffic(ctx, lobby_connections)
  opened.defer(() => traffic_reports.close())
  if (predecessor !== null && !reports.is_registered) {
    throw new StartError('The edge cannot take over while the database is away.')
  }
  await predecessor?.take(heir)
  return { edge, listener, tcp, udp, owners, reports }
}

/** Null: the path of the socket would be too long, or it cannot be made here. */
function handOverPath({ config, log }: Context): string | null {
  const { process: process_number } = config
  const folder = join(config.data_dir, 'edge')
  const path = join(folder, `${instanceName('hand-over', process_number.number)}.sock`)
  if (process.platform !== 'linux' || Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    log.info('this edge hands nothing over: the path of its socket would be too long, or the system is not Linux')
    return null
  }
  // A program that opens the socket gets every connection.
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return path
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** Any free port must be free on all addresses of `edge_hosts`. */
const ATTEMPTS_MAX = 8

type Wanted = { name: ListenerName; port: number; create: () => Server }
type Listening = ListenerFacts & { server: Server }

async function listen(
  ctx: Context,
  { name, port: wanted_port, create }: Wanted,
  inherited: Inheritance | null,
): Promise<Listening[]> {
  const { edge_hosts } = ctx.config
  const is_shared = ctx.config.process.count > 1
  for (let attempt = 1; ; attempt++) {
    const listeners: Listening[] = []
    let port = wanted_port
    try {
      for (const host of edge_hosts) {
        const server = create()
        const handle = inherited?.takeListener({ name, host, port }) ?? null
        if (handle !== null) server.listen(handle)
        else if (!(await listenOn(server, { port, host: host ?? undefined, is_shared }))) continue
        port = portOf(server)
        listeners.push({ name, host, port, server })
      }
      if (listeners.length > 0) return listeners
      throw new Error(`This machine has no address ${edge_hosts.join(' or ')}; set MUSTER_EDGE_HOST to one of its own.`)
    } catch (error) {
      for (const { server } of listeners) server.close()
      const is_taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (wanted_port === 0 && is_taken && attempt < ATTEMPTS_MAX) continue
      throw new StartError(startSentence(error, ctx.config), { cause: error })
    }
  }
}

/** Resolves with false when this machine does not have the address. */
async function listenOn(
  server: Server,
  { port, host, is_shared }: { port: number; host: string | undefined; is_shared: boolean },
): Promise<boolean> {
  const listening = once(server, 'listening')
  // The kernel distributes the connections over all edge processes of the machine.
  server.listen({ port, host, backlog: 1024, ...(is_shared && { reusePort: true }) })
  try {
    await listening
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (host !== undefined && isIPv6(host) && (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')) return false
    throw error
  }
}
