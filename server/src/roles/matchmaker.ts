// The matchmaker role: seats, players, parties and regions over HTTP. It has two listeners: one for players, backends and
// developers, and one for lobbies, which all matchmaker processes of the machine share.
import { type Operation, watchEvents } from '@musterhost/contract'
import type { Context, RunningRole } from '../context.ts'
import { type AppOptions, createApp, createMountOptions, listen } from '../http/app.ts'
import { allowOrigins } from '../http/cors.ts'
import { liveEvents, readNews } from '../http/identity/live.ts'
import { refuseToLobbies, serveLobbies } from '../http/lobby-listener.ts'
import { matchmakerOperations } from '../http/matchmaker/operations.ts'
import { mount } from '../http/mount.ts'
import { openSockets } from '../http/sockets.ts'
import { GuestQuota } from '../identity/guest-quota.ts'
import { createMatchmaker } from '../matchmaker/start.ts'
import { ApiForwarder } from '../peers/api-forwarder.ts'
import { newsOfOwner } from '../peers/news.ts'
import { OwnerForwarder } from '../peers/owner-forwarder.ts'
import { createPeers } from '../peers/peers.ts'
import { RoleTrunks } from '../peers/trunks.ts'
import { ProcessTls } from '../process-tls/process-tls.ts'
import { edgeProof } from '../tokens/edge-proof.ts'
import { CHANNELS } from '../wire/channels.ts'

const LOBBY_APP: AppOptions = {
  service: 'matchmaker',
  body_bytes_max: 64 * 1024,
  request_timeout_ms: 30_000,
  numbers: 'rounded',
  socket_operations: [],
  refusalOf: refuseToLobbies,
}
const APP: AppOptions = {
  ...LOBBY_APP,
  socket_operations: [watchEvents] as readonly unknown[] as Operation[],
  refusalOf: undefined,
}

/** Throws an Error that names the setting when a port is taken. */
export async function startMatchmaker(ctx: Context): Promise<RunningRole> {
  await ctx.revoked.open()
  await using unless_it_serves = new AsyncDisposableStack()
  const matchmaker = await createMatchmaker(ctx)
  unless_it_serves.defer(() => matchmaker.close())
  const tls = new ProcessTls(ctx, 'matchmaker')
  unless_it_serves.defer(() => tls.close())
  const owner_forwarder = new OwnerForwarder(ctx, matchmaker.owners, tls)
  unless_it_serves.defer(() => owner_forwarder.close())
  const trunks = new RoleTrunks(edgeProof(ctx.keys))
  const peers = createPeers(trunks, owner_forwarder)
  const options = createMountOptions(ctx, (origin) => matchmaker.namespaces.ofOrigin(origin), peers)
  const operations = matchmakerOperations(ctx, matchmaker, new GuestQuota(ctx))

  // Not with the first connection of another machine: its request would wait.
  const warmUp = (): void => {
    if (matchmaker.owners.peers().length === 0) return
    tls
      .open()
      .catch((error: unknown) => ctx.log.error({ err: error }, 'the certificate of this process could not be made'))
  }
  warmUp()
  unless_it_serves.defer(ctx.listener.on(CHANNELS.shard_leases, warmUp))
  const guard = { tls }
  const app = createApp(options, { ...APP, guard })
  allowOrigins(app, ctx, ['/*'])
  for (const operation of operations) mount(app, options, operation)
  const forwarder = new ApiForwarder(ctx)
  unless_it_serves.defer(() => forwarder.close())
  const lobby_app = createApp(options, LOBBY_APP)
  serveLobbies(lobby_app, options, operations, (request, reply) => forwarder.forward(request, reply))
  const live = liveEvents(options, newsOfOwner(owner_forwarder, readNews(matchmaker)))
  const sockets = openSockets(app.server, options, 'matchmaker', [live])
  unless_it_serves.defer(() => sockets.close())
  unless_it_serves.defer(() => options.callers.close())
  unless_it_serves.defer(() => options.refusals.close())
  const lobby_role = await listen(ctx, lobby_app, {
    port: ctx.config.lobby_api_port,
    setting: 'MUSTER_LOBBY_API_PORT',
    is_shared: ctx.config.process.count > 1,
  })
  unless_it_serves.defer(() => lobby_role.stop({ end_lobbies: false }))
  const role = await listen(ctx, app, {
    port: ctx.config.matchmaker_ports[ctx.config.process.number]!,
    setting: ctx.config.process.number === 0 ? 'MUSTER_MATCHMAKER_PORT' : 'MUSTER_LOBBY_API_PORT',
  })
  unless_it_serves.move()
  return {
    address: role.address,
    async stop(how) {
      await matchmaker.handOver()
      matchmaker.drain()
      sockets.close()
      await options.callers.close()
      await trunks.close()
      await Promise.all([role.stop(how), lobby_role.stop(how)])
      forwarder.close()
      await options.refusals.close()
      await matchmaker.close()
      owner_forwarder.close()
      tls.close()
    },
  }
}
