// The HTTP server of a role, before any operation is mounted: its limits, parsers, rays and error handlers; how it listens,
// and how it stops.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { ApiError, errorBody, type Operation } from '@musterhost/contract'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { parseTrustedProxies } from '../addresses/client-ip.ts'
import { createClientRateLimiter } from '../addresses/client-rate.ts'
import { ClientShare } from '../addresses/client-share.ts'
import { OwnAddresses } from '../addresses/own-addresses.ts'
import { Refusals } from '../audit/refusals.ts'
import { mainUrl } from '../config/addresses.ts'
import type { Context, RunningRole } from '../context.ts'
import type { RayService } from '../observe/ray.ts'
import { ListenerGuard } from '../process-tls/guard.ts'
import type { ProcessTls } from '../process-tls/process-tls.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import type { OriginLookup } from './auth.ts'
import { type NumberParsing, parseBody } from './body.ts'
import { CallerWatch } from './caller-watch.ts'
import { LOCATED_BODY_BYTES_MAX } from './error-positions.ts'
import { createErrorHandler, createParserErrorHandler } from './errors.ts'
import type { FreeJson } from './exact-json.ts'
import { refusalOfBytes, requireNoCoding } from './media-type.ts'
import type { MountOptions } from './mount-options.ts'
import type { PeerPort } from './peer-port.ts'
import { createRayIds, endRay, openRays } from './ray.ts'
import { recordRefusedRequest } from './refusals.ts'
import { compileSerializer } from './serializer.ts'
import { isSocketUpgrade } from './sockets.ts'
import { compileValidator } from './validator.ts'
import { createWatchShares } from './watches.ts'

/** Node uses the shorter of the two timeouts only if that of the head is not the longer one. */
const HEADERS_TIMEOUT_MS = 10_000
/** How often Node checks for connections that are past a timeout. */
const TIMEOUTS_CHECK_MS = 5_000
const KEEP_ALIVE_TIMEOUT_MS = 75_000
/** Characters of a path parameter. Path parameters are ids; the longest are object keys. */
const PATH_PARAMETER_LENGTH_MAX = 512
/** Clients that one rate limiter remembers. */
const RATE_LIMIT_KEYS_MAX = 100_000
/** Requests under way that did not come through the edge. */
const DIRECT_MAX = 16_384
/** Requests under way of one client or lobby that did not come through the edge. */
const DIRECT_PER_CLIENT_MAX = 4_096
/** The roles whose processes call this one from other machines. */
const CALLING_ROLES = ['matchmaker', 'edge'] as const
/** How long a stopping role waits for requests under way. */
const DRAIN_MS_MAX = 5_000
const DRAIN_POLL_MS = 20

export type AppOptions = {
  service: RayService
  body_bytes_max: number
  /** Within this time the whole of a request must have arrived. */
  request_timeout_ms: number
  numbers: NumberParsing
  /** The operations that are also served by WebSocket. */
  socket_operations: readonly Operation[]
  /** The error for a path that has no route. */
  refusalOf?: ((request: FastifyRequest) => ApiError) | undefined
  /** Sends a page in place of that error. Returns null where none is sent. */
  sendNotFound?: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | null
  /** How processes of other machines reach the listener. Absent: lobbies connect to it, from wherever they are. */
  guard?: { tls: ProcessTls } | undefined
}

export function createMountOptions(ctx: Context, namespaceOfOrigin: OriginLookup, peers: PeerPort): MountOptions {
  const { seats_per_minute, matchmaker_per_minute, cloud_per_minute, kv_per_minute } = ctx.config.rate_limits
  const limiter = (per_minute: number) => createClientRateLimiter({ per_minute, keys_max: RATE_LIMIT_KEYS_MAX })
  return {
    ctx,
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
    own_addresses: new OwnAddresses(ctx.elapsed),
    edge_proof: edgeProof(ctx.keys),
    peers,
    direct: new ClientShare({ slots_max: DIRECT_MAX, client_max: DIRECT_PER_CLIENT_MAX }),
    rayIdOf: createRayIds(ctx),
    limiters: {
      seats: limiter(seats_per_minute),
      matchmaker: limiter(matchmaker_per_minute),
      cloud: limiter(cloud_per_minute),
      kv: limiter(kv_per_minute),
    },
    namespaceOfOrigin,
    watches: createWatchShares(),
    callers: new CallerWatch(ctx),
    refusals: new Refusals(ctx),
  }
}

export function createApp(mounting: MountOptions, options: AppOptions): FastifyInstance {
  const { ctx, peers } = mounting
  let guard: ListenerGuard | null = null
  const handleError = createErrorHandler(ctx, (request, refusal) => recordRefusedRequest(mounting, request, refusal))
  const app = Fastify({
    logger: false,
    bodyLimit: options.body_bytes_max,
    exposeHeadRoutes: false,
    serverFactory: (handle) => {
      const server = createHttpServer(peers, options, handle)
      if (options.guard !== undefined) guard = guardOf(server, mounting, options.guard)
      return server
    },
    // While the role stops, a request on an open connection is handled like any other.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: createRayIds(ctx),
    frameworkErrors: (error, request, reply) => handleError(error, request, reply),
    clientErrorHandler: createParserErrorHandler(ctx),
    routerOptions: { maxParamLength: PATH_PARAMETER_LENGTH_MAX },
  })
  app.addHook('preClose', async () => guard?.close())
  app.decorateRequest('admitted', null)
  app.decorateRequest('body_bytes', null)
  app.decorateRequest('raw_body', null)
  app.decorateRequest('sent_type', null)
  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(compileSerializer)
  parseJsonBodies(app, options.numbers)
  openRays(app, ctx, options.service)
  app.setErrorHandler(handleError)
  const { refusalOf = () => new ApiError('API_NOT_FOUND'), sendNotFound = () => null } = options
  const main_url = mainUrl(ctx.config)
  app.setNotFoundHandler((request, reply) => {
    const page = sendNotFound(request, reply)
    if (page !== null) return page
    const error = refusalOf(request)
    endRay(ctx, request, reply, error.code)
    return reply.code(error.status).send(errorBody(error, { ray_id: request.id, main_url }))
  })
  return app
}

/** Node's server. It hands upgrades to the parts that serve them. */
function createHttpServer(peers: PeerPort, options: AppOptions, handle: RequestListener): Server {
  const isUpgrade = isSocketUpgrade(options.socket_operations)
  return createServer(
    {
      shouldUpgradeCallback: (request) => peers.isUpgrade(request) || isUpgrade(request),
      requestTimeout: options.request_timeout_ms,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECK_MS,
    },
    handle,
  )
}

function guardOf(
  server: Server,
  { ctx, own_addresses }: MountOptions,
  guard: NonNullable<AppOptions['guard']>,
): ListenerGuard {
  const { config, elapsed, log } = ctx
  const plain_from = config.internal_plain_from
  return new ListenerGuard(server, { ...guard, roles: CALLING_ROLES, own_addresses, plain_from, elapsed, log })
}

function parseJsonBodies(app: FastifyInstance, numbers: NumberParsing): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const bytes = withoutMark(body as Buffer)
    request.raw_body = bytes
    if (bytes.length <= LOCATED_BODY_BYTES_MAX) request.body_bytes = bytes
    try {
      requireNoCoding(request)
      const { free_json } = request.routeOptions.config as { free_json?: FreeJson }
      done(null, parseBody(bytes, numbers, free_json))
    } catch (error) {
      done(refusalOfBytes(request, bytes, error) as Error)
    }
  })
}

/** Skips the byte order mark that editors and .NET write before UTF-8. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

/** `is_shared`: other processes of the role listen at the port too, and the kernel distributes the connections. */
type ListenPort = { port: number; setting: string; is_shared?: boolean }

/** Throws an Error that names the setting when the port is taken. */
export async function listen(
  ctx: Context,
  app: FastifyInstance,
  { port, setting, is_shared = false }: ListenPort,
): Promise<RunningRole> {
  try {
    // Fastify passes all options to Node's listen().
    const shared = is_shared ? { reusePort: true } : {}
    const address = await app.listen({ host: ctx.config.internal_host, port, ...shared })
    return { address, stop: () => drain(ctx, app) }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    throw new Error(`Port ${port} cannot be used (${code}); set ${setting} to another one.`, { cause: error })
  }
}

/** Accepts no new connections. Requests under way may finish within DRAIN_MS_MAX; then their connections are closed. */
async function drain(ctx: Context, app: FastifyInstance): Promise<void> {
  const closed = once(app.server, 'close')
  const idle = setInterval(() => app.server.closeIdleConnections(), DRAIN_POLL_MS)
  const late = setTimeout(() => {
    ctx.log.warn('some requests were cut off while stopping')
    app.server.closeAllConnections()
  }, DRAIN_MS_MAX)
  await app.close()
  await closed
  clearInterval(idle)
  clearTimeout(late)
}
