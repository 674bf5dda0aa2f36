// The HTTP door of the api and matchmaker roles. The two lists below are the map of the API.
import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  ApiError,
  errorBody,
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
  type Operation,
  watchEvents,
} from '@muster/contract'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { parseTrustedProxies } from '../addresses/client-ip.ts'
import { createClientRateLimiter } from '../addresses/client-rate.ts'
import { ClientShare } from '../addresses/client-share.ts'
import { OwnAddresses } from '../addresses/own-addresses.ts'
import { startAggregation } from '../analytics/aggregate.ts'
import { createReadLimit } from '../analytics/read-limit.ts'
import { createAskProvider } from '../captcha/provider.ts'
import { orderCertificates, startOrdering } from '../cloud/certificates/certificates.ts'
import { openDeviceLinks } from '../cloud/device-links.ts'
import { checkDomain } from '../cloud/domains/check.ts'
import { startJobs } from '../cloud/jobs.ts'
import { createLiveFeeds } from '../cloud/lobbies/live-feeds.ts'
import { openLogReaders } from '../cloud/lobbies/logs.ts'
import { startScrub } from '../cloud/scrub/scrub.ts'
import { startSweeping } from '../cloud/sweep/sweep.ts'
import { TextPacker } from '../cloud/uploads/pack-texts.ts'
import { mainUrl } from '../config.ts'
import type { Context, RunningRole } from '../context.ts'
import { GuestQuota } from '../identity/guest-quota.ts'
import { openKv } from '../kv/entries.ts'
import { createMatchmaker } from '../matchmaker/start.ts'
import type { RayService } from '../observe/ray.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import { ApiForwarder } from './api-forwarder.ts'
import type { OriginLookup } from './auth.ts'
import { type Numbers, parseBody } from './body.ts'
import { PLACED_BODY_BYTES_MAX } from './body-places.ts'
import { CallerWatch } from './caller-watch.ts'
import { analytics } from './cloud/analytics.ts'
import { billing } from './cloud/billing.ts'
import { bootstrap } from './cloud/bootstrap.ts'
import { builds } from './cloud/builds.ts'
import { deletion } from './cloud/deletion.ts'
import { devices } from './cloud/devices.ts'
import { games } from './cloud/games.ts'
import { groups } from './cloud/groups.ts'
import { images } from './cloud/images.ts'
import { live, liveLobbiesSocket, lobbyLogSocket } from './cloud/live.ts'
import { logs } from './cloud/logs.ts'
import { members } from './cloud/members.ts'
import { namespaceCdn } from './cloud/namespace-cdn.ts'
import { namespaces } from './cloud/namespaces.ts'
import { rays } from './cloud/rays.ts'
import { renaming } from './cloud/renaming.ts'
import { sites } from './cloud/sites.ts'
import { tiers } from './cloud/tiers.ts'
import { tokens } from './cloud/tokens.ts'
import { uploads } from './cloud/uploads.ts'
import { versions } from './cloud/versions.ts'
import { allowOrigins } from './cors.ts'
import { registerDeviceLinkPage } from './device-link/page.ts'
import { createErrorHandler, createParserErrorHandler } from './errors.ts'
import type { FreeJson } from './exact-data.ts'
import { registerExports } from './exports.ts'
import { guests } from './identity/guests.ts'
import { liveEvents } from './identity/live.ts'
import { login } from './identity/login.ts'
import { profile } from './identity/profile.ts'
import { type MountOptions, mount } from './implement.ts'
import { kvEntries } from './kv/entries.ts'
import { refuseToLobbies, serveLobbies } from './lobby-listener.ts'
import { hands } from './matchmaker/hands.ts'
import { lobbies } from './matchmaker/lobbies.ts'
import { parties } from './matchmaker/parties.ts'
import { players } from './matchmaker/players.ts'
import { explanations } from './matchmaker/rays.ts'
import { regions } from './matchmaker/regions.ts'
import { registerObjectRoutes } from './objects.ts'
import { registerPages } from './pages.ts'
import { Parking } from './parking.ts'
import { createRayIds, endRay, openRays } from './ray.ts'
import { addSecurityHeaders } from './security-headers.ts'
import { isSocketUpgrade, openSockets } from './sockets.ts'
import { compileValidator } from './validator.ts'
import { WatchedRecords } from './watched-records.ts'
import { createWatchShares } from './watches.ts'

const API_BODY_BYTES_MAX = 4 * 1024 * 1024
const MATCHMAKER_BODY_BYTES_MAX = 64 * 1024
/** What may be asked for by WebSocket too. */
const API_SOCKETS: readonly Operation[] = [
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
] as readonly unknown[] as Operation[]
const MATCHMAKER_SOCKETS: readonly Operation[] = [watchEvents] as readonly unknown[] as Operation[]
/** The whole of a request must have arrived by then. Of the api's, the longest are uploads. */
const API_REQUEST_TIMEOUT_MS = 60 * 60_000
const MATCHMAKER_REQUEST_TIMEOUT_MS = 30_000
/** Node keeps the shorter of the two only if the head's is not the longer one. */
const HEADERS_TIMEOUT_MS = 10_000
const TIMEOUTS_CHECK_MS = 5_000
const KEEP_ALIVE_TIMEOUT_MS = 75_000
/** Clients that a rate limiter tells apart at once. */
const RATE_LIMIT_KEYS_MAX = 100_000
/** Requests under way that did not come through the edge, and those of one client or lobby. */
const DIRECT_MAX = 16_384
const DIRECT_PER_CLIENT_MAX = 4_096
/** How long a stopping role waits for answers that are under way. */
const DRAIN_MS_MAX = 5_000
const DRAIN_POLL_MS = 20

export async function startApi(ctx: Context): Promise<RunningRole> {
  await ctx.revoked.open()
  const door = createDoor(ctx, () => null)
  const app = createApp(door, 'api', API_BODY_BYTES_MAX, API_REQUEST_TIMEOUT_MS, 'exact', API_SOCKETS)
  addSecurityHeaders(app)
  const links = openDeviceLinks(ctx)
  const log_readers = openLogReaders(ctx)
  const records = new WatchedRecords(ctx)
  for (const implementation of [
    ...bootstrap,
    ...tiers,
    ...login(createAskProvider(ctx)),
    ...devices(links),
    ...groups(records),
    ...billing,
    ...members(records),
    ...games(records),
    ...namespaces,
    ...namespaceCdn,
    ...analytics(createReadLimit()),
    ...tokens,
    ...versions,
    ...builds,
    ...sites,
    ...uploads(new TextPacker()),
    ...images,
    ...renaming,
    ...deletion,
    ...rays,
    ...logs(log_readers),
    ...live,
  ]) {
    mount(app, door, implementation)
  }
  const kv = openKv(ctx)
  // Of all that the api serves, pages of games call only these.
  app.register(async (scope) => {
    allowOrigins(scope, ctx, ['/kv/*', '/identity/*'])
    for (const implementation of [...kvEntries(kv), ...profile(records)]) mount(scope, door, implementation)
  })
  const sockets = openSockets(app.server, door, 'api', [
    liveLobbiesSocket(ctx, createLiveFeeds(ctx)),
    lobbyLogSocket(ctx, log_readers),
  ])
  const close = (): void => {
    sockets.close()
    void door.callers.close()
    links.close()
    records.close()
    kv.close()
    log_readers.close()
  }
  registerObjectRoutes(app, ctx)
  registerExports(app, ctx)
  await registerPages(app, ctx)
  registerDeviceLinkPage(app, ctx)
  const jobs = await startJobs(ctx, { check_domain: checkDomain, order_certificates: orderCertificates })
  try {
    const role = await listen(ctx, app, ctx.config.api_port, 'MUSTER_API_PORT')
    const sweeper = startSweeping(ctx)
    const scrub = startScrub(ctx)
    const stopOrdering = startOrdering(ctx)
    const folder = startAggregation(ctx)
    return {
      address: role.address,
      async stop(how) {
        close()
        stopOrdering()
        await door.callers.close()
        await door.parking.close()
        await role.stop(how)
        await sweeper.stop()
        await scrub.stop()
        await folder.stop()
        await jobs.stop()
      },
    }
  } catch (error) {
    await jobs.stop()
    close()
    throw error
  }
}

export async function startMatchmaker(ctx: Context): Promise<RunningRole> {
  await ctx.revoked.open()
  await using unless_it_serves = new AsyncDisposableStack()
  const matchmaker = await createMatchmaker(ctx)
  unless_it_serves.defer(matchmaker.close)
  const namespaceOfOrigin: OriginLookup = (origin) => matchmaker.namespaces.ofOrigin(origin)
  const door = createDoor(ctx, namespaceOfOrigin)
  const app = createApp(
    door,
    'matchmaker',
    MATCHMAKER_BODY_BYTES_MAX,
    MATCHMAKER_REQUEST_TIMEOUT_MS,
    'rounded',
    MATCHMAKER_SOCKETS,
  )
  allowOrigins(app, ctx, ['/*'])
  const implementations = [
    ...lobbies(matchmaker),
    ...players(matchmaker),
    ...regions(matchmaker),
    ...parties(matchmaker),
    ...guests(new GuestQuota(ctx)),
    ...hands(ctx, matchmaker),
    ...explanations(ctx, matchmaker),
  ]
  for (const implementation of implementations) mount(app, door, implementation)
  const forwarder = new ApiForwarder(ctx)
  unless_it_serves.defer(() => forwarder.close())
  const lobby_app = createApp(
    door,
    'matchmaker',
    MATCHMAKER_BODY_BYTES_MAX,
    MATCHMAKER_REQUEST_TIMEOUT_MS,
    'rounded',
    [],
    refuseToLobbies,
  )
  serveLobbies(lobby_app, door, implementations, forwarder)
  const sockets = openSockets(app.server, door, 'matchmaker', [liveEvents(door, matchmaker)])
  unless_it_serves.defer(sockets.close)
  unless_it_serves.defer(() => door.callers.close())
  const lobby_role = await listen(ctx, lobby_app, ctx.config.lobby_api_port, 'MUSTER_LOBBY_API_PORT')
  unless_it_serves.defer(() => lobby_role.stop({ end_lobbies: false }))
  const role = await listen(ctx, app, ctx.config.matchmaker_port, 'MUSTER_MATCHMAKER_PORT')
  unless_it_serves.move()
  return {
    address: role.address,
    async stop(how) {
      matchmaker.refuse()
      sockets.close()
      await door.callers.close()
      await door.parking.close()
      await Promise.all([role.stop(how), lobby_role.stop(how)])
      forwarder.close()
      await matchmaker.close()
    },
  }
}

function createDoor(ctx: Context, namespaceOfOrigin: OriginLookup): MountOptions {
  const { seats_per_minute, matchmaker_per_minute, cloud_per_minute, kv_per_minute } = ctx.config.rate_limits
  const limiter = (per_minute: number) => createClientRateLimiter({ per_minute, keys_max: RATE_LIMIT_KEYS_MAX })
  const edge_proof = edgeProof(ctx.keys)
  return {
    ctx,
    trusted: parseTrustedProxies(ctx.config.trusted_proxies),
    own_addresses: new OwnAddresses(ctx.elapsed),
    edge_proof,
    parking: new Parking(edge_proof),
    direct: new ClientShare({ places_max: DIRECT_MAX, client_max: DIRECT_PER_CLIENT_MAX }),
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
  }
}

function createApp(
  { ctx, parking }: MountOptions,
  service: RayService,
  body_bytes_max: number,
  request_timeout_ms: number,
  numbers: Numbers,
  socket_operations: readonly Operation[],
  refusalOf: (request: FastifyRequest) => ApiError = () => new ApiError('API_NOT_FOUND'),
): FastifyInstance {
  const main_url = mainUrl(ctx.config)
  const handleError = createErrorHandler(ctx)
  const isUpgrade = isSocketUpgrade(socket_operations)
  const app = Fastify({
    logger: false,
    bodyLimit: body_bytes_max,
    exposeHeadRoutes: false,
    serverFactory: (handle) =>
      createServer(
        {
          shouldUpgradeCallback: (request) => parking.isChannel(request) || isUpgrade(request),
          requestTimeout: request_timeout_ms,
          keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
          headersTimeout: HEADERS_TIMEOUT_MS,
          connectionsCheckingInterval: TIMEOUTS_CHECK_MS,
        },
        (request, response) => {
          if (!parking.claim(request, response)) handle(request, response)
        },
      ),
    // What comes on an open connection while the role stops is answered like everything else.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: createRayIds(ctx),
    frameworkErrors: (error, request, reply) => handleError(error, request, reply),
    clientErrorHandler: createParserErrorHandler(ctx),
    routerOptions: { maxParamLength: 512 },
  })
  app.decorateRequest('admitted', null)
  app.decorateRequest('body_bytes', null)
  app.setValidatorCompiler(compileValidator)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const bytes = body as Buffer
    if (bytes.length <= PLACED_BODY_BYTES_MAX) request.body_bytes = bytes
    try {
      const { free_json } = request.routeOptions.config as { free_json?: FreeJson }
      done(null, parseBody(bytes, numbers, free_json))
    } catch (error) {
      done(error as Error)
    }
  })
  openRays(app, ctx, service)
  app.setErrorHandler(handleError)
  app.setNotFoundHandler((request, reply) => {
    const error = refusalOf(request)
    endRay(ctx, request, reply, error.code)
    reply.code(error.status).send(errorBody(error, { ray_id: request.id, main_url }))
  })
  return app
}

/** Throws an Error that names the setting when the port is taken. */
async function listen(ctx: Context, app: FastifyInstance, port: number, setting: string): Promise<RunningRole> {
  try {
    const address = await app.listen({ host: ctx.config.internal_host, port })
    return { address, stop: () => drain(ctx, app) }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    throw new Error(`Port ${port} cannot be used (${code}); set ${setting} to another one.`, { cause: error })
  }
}

/** No new connections; what is being answered may finish, for a while, and its connection is closed then. */
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
