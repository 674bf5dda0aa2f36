// The matchmaker of this process. It shares the shards with the matchmakers of other nodes: `shards/shard-leases.ts` takes and gives
// them, and everything else here acts for the shards that this process has.
import { ApiError } from '@musterhost/contract'
import { startCaptchaSweep } from '../captcha/claims.ts'
import { createAskProvider } from '../captcha/provider.ts'
import { internalAddress } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import type { Poller } from '../database/poller.ts'
import { shardOf } from '../journal/pages.ts'
import { NONE_REPORTED_MS, UNREAD_IDLE_RULES } from './book/idle.ts'
import type { ScheduleRules } from './book/schedule-rules.ts'
import { DecisionLogs } from './explanations/decision-log.ts'
import { createExplanationStore, type ExplanationStore } from './explanations/store.ts'
import { keepIdleLobbies } from './idle-lobbies.ts'
import { type MatchmakerParts, registerMetrics } from './metrics/metrics.ts'
import { Projection } from './projection/projection.ts'
import { startRetention } from './retention.ts'
import { startSchedules } from './schedules/start.ts'
import { openAddressData } from './seats/address-data.ts'
import type { MatchmakerContext } from './seats/context.ts'
import { countFindDurations, countMatchWaits } from './seats/find-durations.ts'
import { createWrongCodes } from './seats/lobby-codes.ts'
import { RecentWaits } from './seats/matching/recent-waits.ts'
import { WaitViews } from './seats/matching/wait-views.ts'
import { countRolloutFinds } from './seats/rollout-finds.ts'
import { createAskGame } from './seats/verification/ask-game.ts'
import { Books } from './shards/books.ts'
import { ShardLeases } from './shards/shard-leases.ts'
import { watchEdgePlayers } from './watch/edge-players.ts'
import { type Edges, watchPorts } from './watch/edge-ports.ts'
import { watchEdgeReports } from './watch/edge-reports.ts'
import { stopExpiredLobbies } from './watch/expired-namespaces.ts'
import { FailedStarts } from './watch/failed-starts.ts'
import { createNamespaces, type Namespaces } from './watch/namespaces.ts'
import { watchNodes } from './watch/nodes.ts'
import { Observed } from './watch/observed.ts'
import { watchOtherLobbies } from './watch/other-lobbies.ts'
import { notePlayedGuests } from './watch/played-guests.ts'
import { wakeReaders } from './watch/readers.ts'
import { type RunWatch, watchRuns } from './watch/runs.ts'
import { type RunStarts, watchRunStarts } from './watch/starts.ts'

export type Matchmaker = {
  namespaces: Namespaces
  /** Throws API_NOT_AVAILABLE after drain(). */
  context: () => MatchmakerContext
  /** Which process has the books of a shard. */
  owners: ShardOwners
  /** Gives all shards to other processes, where there are any: this process is about to stop. */
  handOver: () => Promise<void>
  /** Refuses new commands, and ends all waits for lobbies: the process is about to stop. */
  drain: () => void
  close: () => Promise<void>
}

export type ShardOwners = Pick<ShardLeases, 'ownerOf' | 'peers' | 'refresh' | 'onLost'> & {
  /** Whether this process has the shard of the namespace. */
  has: (namespace_id: string) => boolean
  shardOf: (namespace_id: string) => number
}

/** Has its share of the shards when it resolves. Closes what it has opened when it fails. */
export async function createMatchmaker(ctx: Context): Promise<Matchmaker> {
  await using opened = new AsyncDisposableStack()
  const { config, pool, now, elapsed, log, metrics, listener } = ctx
  const namespaces = createNamespaces(ctx)
  opened.defer(() => namespaces.close())
  const ip_intelligence = openAddressData(ctx)
  opened.defer(() => ip_intelligence.close())
  const explanations = createExplanationStore(ctx)
  opened.defer(() => explanations.close())
  const find_durations = countFindDurations(ctx)
  opened.defer(() => find_durations.close())
  const rollout_finds = countRolloutFinds(ctx)
  opened.defer(() => rollout_finds.close())
  const match_waits = countMatchWaits(ctx)
  opened.defer(() => match_waits.close())
  const projection = new Projection(pool, log)
  opened.defer(() => projection.close())
  const schedule_rules = new Map<string, ScheduleRules>()
  const books: Books = new Books({
    ...{ pool, projection, now, elapsed, log, metrics },
    ...{ regions: config.regions, node_capacity: config.node_capacity },
    idle_rules: UNREAD_IDLE_RULES,
    schedule_rules,
    reported_ms: NONE_REPORTED_MS,
    onDeposed: (shard) => leases.deposed(shard),
  })
  const address = internalAddress(config)
  const leases = new ShardLeases(
    { pool, listener, log, now, elapsed, address, node_id: config.node_id, process: config.process },
    books,
  )
  const parts: MatchmakerParts = { books, projection, leases, connectionCount: () => 0 }
  registerMetrics(ctx, parts)
  // They write what the last commits say, so they are closed after the books.
  const waker = wakeReaders(listener, books)
  opened.defer(() => waker.close())
  const played_guests = notePlayedGuests(ctx, books)
  opened.defer(() => played_guests.close())
  let served_ms: number | null = null
  opened.defer(() => leases.release(served_ms))
  opened.defer(() => books.close())
  opened.defer(() => {
    served_ms = leases.servedMs()
    return leases.close()
  })
  await leases.start()

  const { failed_starts, run_starts, edges } = await openWatches(
    ctx,
    { parts, namespaces, explanations, schedule_rules },
    opened,
  )
  const recent_waits = new RecentWaits()
  const context: MatchmakerContext = {
    ...ctx,
    ...{ namespaces, ip_intelligence, books, run_starts, failed_starts, explanations, find_durations },
    ...{ rollout_finds, match_waits },
    askProvider: createAskProvider(ctx),
    askGame: createAskGame(ctx),
    decision_logs: new DecisionLogs(ctx, explanations),
    recent_waits,
    wait_views: new WaitViews(recent_waits),
    wrong_codes: createWrongCodes(),
    open_requests: new Map(),
    solving: new Map(),
    verifying: new Map(),
    seat_texts: new WeakMap(),
    edges,
  }
  let is_draining = false
  const closing = opened.move()
  return {
    namespaces,
    owners: {
      ownerOf: (shard) => leases.ownerOf(shard),
      peers: () => leases.peers(),
      refresh: () => leases.refresh(),
      onLost: (writer, shard, onLost) => leases.onLost(writer, shard, onLost),
      has: (namespace_id) => books.has(namespace_id),
      shardOf,
    },
    context() {
      if (is_draining) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      return context
    },
    handOver: () => leases.leave(),
    drain() {
      is_draining = true
      books.endWaiting()
    },
    close: () => closing.disposeAsync(),
  }
}

type Watched = {
  parts: MatchmakerParts
  namespaces: Namespaces
  explanations: ExplanationStore
  schedule_rules: Map<string, ScheduleRules>
}

/** Opens what follows the other roles, in order; it is closed in reverse, before the books. */
async function openWatches(
  ctx: Context,
  { parts, namespaces, explanations, schedule_rules }: Watched,
  opened: AsyncDisposableStack,
): Promise<{ failed_starts: FailedStarts; run_starts: RunStarts; edges: () => Edges }> {
  const { books } = parts
  let runs: RunWatch | null = null
  const ports = await watchPorts(ctx, books)
  opened.defer(() => ports.close())
  const other_lobbies = await watchOtherLobbies(ctx, books)
  opened.defer(() => other_lobbies.close())
  const observed = new Observed(ctx)
  opened.defer(() => observed.close())
  let edge_players: Pick<Poller, 'wake' | 'close'> | null = null
  const onEdges = (): void => edge_players?.wake()
  const edge_reports = await watchEdgeReports(ctx, { books, observed, onEdges })
  opened.defer(() => edge_reports.close())
  parts.connectionCount = edge_reports.connectionCount
  edge_players = await watchEdgePlayers(ctx, books)
  opened.defer(() => edge_players?.close())
  const nodes = await watchNodes(ctx, { books, observed, onShut: () => runs?.wake() })
  opened.defer(() => nodes.close())
  const failed_starts = new FailedStarts(books)
  opened.defer(() => failed_starts.close())
  const run_starts = watchRunStarts(ctx, books)
  opened.defer(() => run_starts.close())
  runs = await watchRuns(ctx, books, failed_starts, nodes.shutNodes)
  opened.defer(() => runs?.close())
  const idle_lobbies = await keepIdleLobbies(ctx, books, namespaces)
  opened.defer(() => idle_lobbies.close())
  const schedules = await startSchedules(ctx, { books, namespaces, idle_lobbies, rules: schedule_rules })
  opened.defer(() => schedules.close())
  const expired = stopExpiredLobbies(ctx, books)
  opened.defer(() => expired.close())
  // Once for the platform: by the process that has the first shard.
  const isFirst = (): boolean => books.shards().includes(0)
  const captcha_sweep = startCaptchaSweep(ctx, isFirst)
  opened.defer(() => captcha_sweep.stop())
  const retention = startRetention(ctx, explanations, { bookTime: books.nowMs, isFirst })
  opened.defer(() => retention.stop())
  return { failed_starts, run_starts, edges: ports.edges }
}
