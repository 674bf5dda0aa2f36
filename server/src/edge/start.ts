// The edge role: the public HTTP port, in front of everything. It holds nothing that lasts: killed, it loses the
// connections that went through it, and the next one is as good.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, isIPv6, type Socket } from 'node:net'
import { publicUrl } from '../config.ts'
import type { Context, RunningRole } from '../context.ts'
import { clientBucket, parseTrustedProxies } from '../net/client-ip.ts'
import { StartError, startSentence } from '../start-error.ts'
import { createAgents } from './agents.ts'
import { createCdn } from './cdn.ts'
import { createDomains } from './domains.ts'
import { createHosts } from './hosts.ts'
import { type Edge, serveHttp, shouldUpgrade } from './http.ts'
import {
  CONNECTIONS_PER_SOURCE_SHARE,
  connectionsMax,
  HEADER_BYTES_MAX,
  HEADER_CHECK_MS,
  HEADER_MS_MAX,
  KEEP_ALIVE_MS_MAX,
  REQUEST_IDLE_MS_MAX,
  STOP_MS_MAX,
} from './limits.ts'
import { createLookups } from './lookups.ts'
import { createMedia } from './media.ts'
import { createRefuse } from './refuse.ts'
import { createRoutes } from './routes.ts'
import { createSend } from './send.ts'
import { createSites } from './sites.ts'

/**
 * Listens on `config.edge_http_port` (0: any): on loopback in development, on all addresses in production. Rejects with
 * a StartError that names MUSTER_EDGE_HTTP_PORT when the port cannot be had.
 */
export async function startEdge(ctx: Context): Promise<RunningRole> {
  const door = createDoor()
  let port = ctx.config.edge_http_port
  const mainUrl = () => {
    const advertised_http_port = ctx.config.advertised_http_port || port
    return publicUrl({ ...ctx.config, advertised_http_port }, ctx.config.domains.main)
  }
  const refuse = createRefuse(ctx, mainUrl)
  const lookups = createLookups(ctx)
  const sites = createSites(ctx, lookups)
  const send = createSend(ctx)
  const edge: Edge = {
    ctx,
    agents: createAgents(),
    routes: createRoutes(ctx, lookups),
    cdn: createCdn(ctx, { sites, refuse, send, mainUrl }),
    media: createMedia(ctx, { lookups, refuse, send }),
    domains: createDomains(ctx, lookups),
    refuse,
    meaningOf: createHosts(ctx.config),
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
  }
  const close = () => {
    edge.agents.close()
    edge.routes.close()
    edge.domains.close()
    sites.close()
  }

  const servers = await listen(ctx, () => {
    const server = door.server()
    serveHttp(edge, server)
    return server
  }).catch((error: unknown) => {
    close()
    throw error
  })
  port = portOf(servers[0]!)
  ctx.log.info({ port, connections_max: door.connections_max }, 'the edge listens')
  return {
    address: `http://127.0.0.1:${port}`,
    stop: async () => {
      await door.close(servers)
      close()
    },
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** Every connection comes through here, and is counted: altogether, and by where it comes from. */
function createDoor() {
  const connections_max = connectionsMax()
  const per_source_max = Math.ceil(connections_max * CONNECTIONS_PER_SOURCE_SHARE)
  const sockets = new Set<Socket>()
  const counts = new Map<string, number>()

  function onConnection(socket: Socket): void {
    // A peer may break a connection at any moment, also when nobody else is looking at it.
    socket.on('error', () => {})
    const source = clientBucket(socket.remoteAddress ?? '')
    const count = counts.get(source) ?? 0
    // Refused while there still are descriptors: with none left, nobody's requests could be answered.
    if (sockets.size >= connections_max || count >= per_source_max) {
      socket.resetAndDestroy()
      return
    }
    sockets.add(socket)
    counts.set(source, count + 1)
    socket.once('close', () => {
      sockets.delete(socket)
      const left = (counts.get(source) ?? 1) - 1
      if (left === 0) counts.delete(source)
      else counts.set(source, left)
    })
  }

  const server = (): Server => {
    const made = createServer({
      requireHostHeader: false,
      insecureHTTPParser: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADER_MS_MAX,
      connectionsCheckingInterval: HEADER_CHECK_MS,
      // An upload may take long; what must not happen is that nothing moves.
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS_MAX,
      shouldUpgradeCallback: shouldUpgrade,
    })
    made.timeout = REQUEST_IDLE_MS_MAX
    // Counted by us, who refuse; the parser would only forget the rest.
    made.maxHeadersCount = 0
    made.prependListener('connection', onConnection)
    return made
  }

  async function close(servers: readonly Server[]): Promise<void> {
    const closed = servers.map((item) => {
      const end = once(item, 'close')
      item.close()
      item.closeIdleConnections()
      return end
    })
    const timer = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, STOP_MS_MAX)
    await Promise.all(closed)
    clearTimeout(timer)
  }

  return { connections_max, server, close }
}

const LOOPBACK = ['127.0.0.1', '::1']
/** Any free port must be free on both loopback addresses. */
const ATTEMPTS_MAX = 8

async function listen(ctx: Context, createOne: () => Server): Promise<Server[]> {
  const { mode, edge_http_port } = ctx.config
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = []
    let port = edge_http_port
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
      if (edge_http_port === 0 && is_taken && attempt < ATTEMPTS_MAX) continue
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
