// The api role: people, groups, games, uploads, logs and analytics over HTTP, and the work in the background that keeps
// them in order. What holds requests open is closed first, so that the rest can finish; then the server; then the work.
import {
  getAnalyticsMatchmakerFinds,
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
  type Operation,
} from '@musterhost/contract'
import { startAggregation } from '../analytics/aggregate.ts'
import { createReadLimit } from '../analytics/read-limit.ts'
import { createAskProvider } from '../captcha/provider.ts'
import { endFormerRestores, Restores } from '../cloud/backups/operations.ts'
import { orderCertificates, startOrdering } from '../cloud/certificates/certificates.ts'
import { checkDomain } from '../cloud/domains/check.ts'
import { startJobs } from '../cloud/jobs.ts'
import { openFindFeed } from '../cloud/lobbies/find-feeds.ts'
import { openLobbyFeed } from '../cloud/lobbies/live-feeds.ts'
import { openLogReaders } from '../cloud/lobbies/logs.ts'
import { createFeeds } from '../cloud/lobbies/shared-feeds.ts'
import { startExpiry } from '../cloud/namespaces/expiry.ts'
import { startNodeUse } from '../cloud/nodes/node-use.ts'
import { startNotices } from '../cloud/notices/start.ts'
import { watchRollouts } from '../cloud/rollouts/watch.ts'
import { startScrub } from '../cloud/scrub/scrub.ts'
import { startStatusWork } from '../cloud/status/start.ts'
import { startSweeping } from '../cloud/sweep/sweep.ts'
import { openDeviceLinks } from '../cloud/tokens/device-links.ts'
import { TextPacker } from '../cloud/uploads/pack-texts.ts'
import { StartError } from '../config/start-error.ts'
import type { Context, RunningRole } from '../context.ts'
import { type AppOptions, createApp, createMountOptions, listen } from '../http/app.ts'
import { registerBackchannelLogout } from '../http/backchannel-logout.ts'
import { findsSocket } from '../http/cloud/finds.ts'
import { liveLobbiesSocket, lobbyLogSocket } from '../http/cloud/live.ts'
import { registerCommandPackage } from '../http/command-package.ts'
import { allowOrigins } from '../http/cors.ts'
import { registerExports } from '../http/exports.ts'
import { openHubPages } from '../http/hub/pages.ts'
import { mount } from '../http/mount.ts'
import { registerObjectRoutes } from '../http/objects.ts'
import { registerPages } from '../http/pages.ts'
import { addSecurityHeaders } from '../http/security-headers.ts'
import { apiOperations, pageOperations } from '../http/server.ts'
import { openSockets } from '../http/sockets.ts'
import { WatchedRecords } from '../http/watched-records.ts'
import { openSignInWork } from '../identity/providers/open.ts'
import { openKv } from '../kv/entries.ts'
import { findStoreFault } from '../objects/open.ts'
import { createPeers } from '../peers/peers.ts'
import { RoleTrunks } from '../peers/trunks.ts'
import { ProcessTls } from '../process-tls/process-tls.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import { createChecks } from './checks.ts'

/** Between two checks of the bucket, when the health is read more often. */
const STORE_CHECK_EVERY_MS = 30_000

const APP: AppOptions = {
  service: 'api',
  body_bytes_max: 4 * 1024 * 1024,
  // Uploads take longest.
  request_timeout_ms: 60 * 60_000,
  numbers: 'exact',
  socket_operations: [
    getAnalyticsMatchmakerFinds,
    getAnalyticsMatchmakerLive,
    getLobbyLogs,
  ] as readonly unknown[] as Operation[],
}

/** Throws an Error that names the setting when its port is taken. */
export async function startApi(ctx: Context): Promise<RunningRole> {
  await requireStore(ctx)
  await ctx.revoked.open()
  await using waiting = new AsyncDisposableStack()
  await using background = new AsyncDisposableStack()
  const trunks = new RoleTrunks(edgeProof(ctx.keys))
  const options = createMountOptions(ctx, () => null, createPeers(trunks, null))
  const tls = new ProcessTls(ctx, 'api')
  background.defer(() => tls.close())
  const hub = openHubPages(ctx)
  const guard = { tls }
  const app = createApp(options, { ...APP, guard, sendNotFound: hub.sendNotFound })
  addSecurityHeaders(app)

  const log_readers = openLogReaders(ctx)
  waiting.defer(() => log_readers.close())
  const kv = openKv(ctx)
  waiting.defer(() => kv.close())
  const records = new WatchedRecords(ctx)
  waiting.defer(() => records.close())
  const device_links = openDeviceLinks(ctx)
  waiting.defer(() => device_links.close())
  waiting.defer(() => options.callers.close())
  const sockets = openSockets(app.server, options, 'api', [
    liveLobbiesSocket(
      ctx,
      createFeeds((namespace_id) => openLobbyFeed(ctx, namespace_id)),
    ),
    findsSocket(
      ctx,
      createFeeds((namespace_id) => openFindFeed(ctx, namespace_id)),
    ),
    lobbyLogSocket(ctx, log_readers),
  ])
  waiting.defer(() => sockets.close())

  const loadSignInWork = openSignInWork(ctx)
  const restores = new Restores(ctx)
  background.defer(() => restores.close())
  const operations = apiOperations({
    askProvider: createAskProvider(ctx),
    loadSignInWork,
    device_links,
    records,
    read_limit: createReadLimit(),
    packer: new TextPacker(),
    log_readers,
    runChecks: createChecks(ctx),
    restores,
  })
  for (const operation of operations) mount(app, options, operation)
  app.register(async (scope) => {
    allowOrigins(scope, ctx, ['/kv/*', '/ratings/*', '/identity/*'])
    for (const operation of pageOperations(kv, records)) mount(scope, options, operation)
  })
  registerObjectRoutes(app, ctx)
  registerExports(app, ctx)
  registerPages(app, ctx)
  registerBackchannelLogout(app, options, loadSignInWork)
  registerCommandPackage(app, ctx)
  hub.register(app)

  // Schedules are read with a library that an api without backups does not load.
  const loadSchedule = () => import('../cloud/backups/runs.ts')
  const jobs = await startJobs(ctx, {
    check_domain: checkDomain,
    order_certificates: orderCertificates,
    back_up: async (...work) => (await loadSchedule()).runBackup(...work),
  })
  background.defer(() => jobs.stop())
  if (ctx.config.backups !== null) {
    await endFormerRestores(ctx)
    await (await loadSchedule()).planBackups(ctx)
  }
  background.defer(() => options.refusals.close())
  const role = await listen(ctx, app, { port: ctx.config.api_port, setting: 'MUSTER_API_PORT' })
  const aggregation = startAggregation(ctx)
  background.defer(() => aggregation.stop())
  const node_use = startNodeUse(ctx)
  background.defer(() => node_use.close())
  const scrub = startScrub(ctx)
  background.defer(() => scrub.stop())
  const expiry = startExpiry(ctx)
  background.defer(() => expiry.stop())
  const rollouts = watchRollouts(ctx)
  background.defer(() => rollouts.close())
  const notices = startNotices(ctx)
  background.defer(() => notices.close())
  const status_pages = startStatusWork(ctx)
  background.defer(() => status_pages.close())
  const sweeper = startSweeping(ctx)
  background.defer(() => sweeper.stop())
  waiting.defer(startOrdering(ctx))

  const open = { waiting: waiting.move(), background: background.move() }
  return {
    address: role.address,
    async stop(how) {
      await open.waiting.disposeAsync()
      await trunks.close()
      await role.stop(how)
      await open.background.disposeAsync()
    },
  }
}

/** A bucket that refuses the platform is a mistake of its settings. One that does not respond may respond later. */
async function requireStore(ctx: Context): Promise<void> {
  if (ctx.config.objects === null) return
  const find = () => findStoreFault(ctx.config, ctx)
  let fault = await find()
  if (fault !== null && !fault.is_away) throw new StartError(`${fault.sentence} Check ${fault.remedy}.`)
  if (fault !== null) ctx.log.warn({ fault: fault.sentence }, 'the bucket does not respond; uploads fail until it does')
  let asked_ms = ctx.elapsed()
  ctx.health.warns('objects', async () => {
    if (ctx.elapsed() - asked_ms < STORE_CHECK_EVERY_MS) return fault?.sentence ?? null
    asked_ms = ctx.elapsed()
    // A reader of the health does not wait for the bucket.
    void find().then(
      (found) => {
        fault = found
      },
      (error: unknown) => ctx.log.warn({ err: error }, 'the bucket could not be checked'),
    )
    return fault?.sentence ?? null
  })
}
