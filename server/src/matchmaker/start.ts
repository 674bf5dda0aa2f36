// The matchmaker of this process: it holds the lease and the books, or stands by until it may. Deposed, it lets its
// books go and stands by again.
import { ApiError } from '@muster/contract'
import { startCaptchaSweep } from '../captcha/claims.ts'
import { createAskProvider } from '../captcha/provider.ts'
import type { Context } from '../context.ts'
import type { Sweeper } from '../database/sweeper.ts'
import { newId } from '../ids.ts'
import { NONE_REPORTED_MS, UNREAD_IDLE_RULES } from './book/idle.ts'
import { DecisionLogs } from './explanations/decision-log.ts'
import { createExplanationStore } from './explanations/store.ts'
import { type IdleLobbies, keepIdleLobbies } from './idle-lobbies.ts'
import { tellMatchmaker } from './metrics/metrics.ts'
import { Projection } from './projection/projection.ts'
import { startRetention } from './retention.ts'
import { openAddressData } from './seats/address-data.ts'
import type { MatchmakerContext } from './seats/context.ts'
import { createAskGame } from './seats/verification/calls.ts'
import { Books } from './shards/books.ts'
import { holdLease, keepRenewing, releaseLease } from './shards/lease.ts'
import { type DiskWatch, watchDisks } from './watch/disks.ts'
import { type PortWatch, watchPorts } from './watch/edge-ports.ts'
import { type EdgeReports, watchEdgeReports } from './watch/edge-reports.ts'
import { FailedStarts } from './watch/failed-starts.ts'
import { createNamespaces, type Namespaces } from './watch/namespaces.ts'
import { notePlayedGuests, type PlayedGuests } from './watch/played-guests.ts'
import { type ReaderWaker, wakeReaders } from './watch/readers.ts'
import { type RunWatch, watchRuns } from './watch/runs.ts'
import { type RunStarts, watchRunStarts } from './watch/starts.ts'

export type Matchmaker = {
  namespaces: Namespaces
  /** Throws API_NOT_AVAILABLE while another process writes. */
  context: () => MatchmakerContext
  /** No new commands, and nobody waits for a lobby any longer: the process is about to stop. */
  refuse: () => void
  close: () => Promise<void>
}

type Leadership = {
  books: Books
  projection: Projection
  runs: RunWatch
  run_starts: RunStarts
  idle_lobbies: IdleLobbies
  retention: Sweeper
  ports: PortWatch
  edge_reports: EdgeReports
  disks: DiskWatch
  played_guests: PlayedGuests
  captcha_sweep: { stop: () => Promise<void> }
  waker: ReaderWaker
  context: MatchmakerContext
}

export async function createMatchmaker(ctx: Context): Promise<Matchmaker> {
  const { pool, log, metrics } = ctx
  const namespaces = createNamespaces(ctx)
  const ip_intelligence = openAddressData(ctx)
  const askProvider = createAskProvider(ctx)
  const askGame = createAskGame(ctx)
  const writer = newId(ctx.now())
  let office: Leadership | null = null
  let opening: Books | null = null
  let is_restart = true
  let is_refusing = false
  let turning: Promise<void> = Promise.resolve()

  async function open(): Promise<void> {
    const projection = new Projection(pool, log)
    const books = new Books({
      pool,
      projection,
      regions: ctx.config.regions,
      now: ctx.now,
      elapsed: ctx.elapsed,
      idle_rules: UNREAD_IDLE_RULES,
      reported_ms: NONE_REPORTED_MS,
      log,
      metrics,
      onDeposed: () => void turn(leave),
    })
    opening = books
    await books.open()
    opening = null
    const ports = await watchPorts(ctx, books)
    const edge_reports = await watchEdgeReports(ctx, books)
    const disks = await watchDisks(ctx, books)
    const failed_starts = new FailedStarts(books)
    const runs = await watchRuns(ctx, books, failed_starts)
    const idle_lobbies = await keepIdleLobbies(ctx, books, namespaces)
    const explanations = createExplanationStore(ctx)
    const run_starts = watchRunStarts(ctx, books)
    const context: MatchmakerContext = {
      ...ctx,
      books,
      namespaces,
      ip_intelligence,
      open_requests: new Map(),
      seat_texts: new WeakMap(),
      askProvider,
      solving: new Map(),
      askGame,
      verifying: new Map(),
      explanations,
      decision_logs: new DecisionLogs(ctx, explanations),
      run_starts,
      failed_starts,
    }
    office = {
      books,
      projection,
      runs,
      run_starts,
      idle_lobbies,
      ports,
      edge_reports,
      disks,
      played_guests: notePlayedGuests(ctx, books),
      retention: startRetention(ctx, explanations, books.nowMs),
      captcha_sweep: startCaptchaSweep(ctx),
      waker: wakeReaders(ctx.listener, books),
      context,
    }
  }

  async function leave(): Promise<void> {
    const closing = office
    office = null
    if (closing === null) return
    await closing.retention.stop()
    await closing.idle_lobbies.close()
    await closing.runs.close()
    closing.run_starts.close()
    closing.context.failed_starts.close()
    await closing.captcha_sweep.stop()
    await closing.ports.close()
    await closing.edge_reports.close()
    await closing.disks.close()
    await closing.books.close()
    await closing.played_guests.close()
    closing.waker.close()
    await closing.projection.close()
    await closing.context.explanations.close()
  }

  /** One change of office at a time. */
  function turn(step: () => Promise<void>): Promise<void> {
    turning = turning
      .then(step)
      .catch((error: unknown) => log.error({ err: error }, 'the matchmaker could not change office'))
    return turning
  }

  async function renew(): Promise<void> {
    if (is_refusing) return
    const is_ours = await holdLease(pool, { node_id: ctx.config.node_id, writer, is_restart })
    // Once in office this process has had its start: from now on it waits like everybody else.
    is_restart = false
    if (is_ours && office === null) await open()
    if (!is_ours && office !== null) await leave()
  }

  tellMatchmaker(ctx, () => office)
  const first = renew()
  // Its failure is the start's, below; what turns later only waits.
  turning = first.catch(() => {})
  await first
  const endRenewing = keepRenewing(() => turn(renew))

  return {
    namespaces,
    context() {
      if (office === null || is_refusing) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      return office.context
    },
    refuse() {
      is_refusing = true
      office?.books.endWaiting()
    },
    async close() {
      is_refusing = true
      endRenewing()
      // Books that cannot be read yet would be waited for without end.
      await opening?.close()
      await turn(leave)
      await releaseLease(pool, writer).catch((error: unknown) =>
        log.warn({ err: error }, 'the lease could not be let go; the next matchmaker waits until it is stale'),
      )
      await ip_intelligence.close()
      namespaces.close()
    },
  }
}
