// The matchmaker of this process: it leads while it holds the lease, and stands by otherwise. A leader that is deposed
// steps down and stands by again.
import { ApiError } from '@muster/contract'
import { startCaptchaSweep } from '../captcha/claims.ts'
import { createAskProvider } from '../captcha/provider.ts'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { NONE_REPORTED_MS, UNREAD_IDLE_RULES } from './book/idle.ts'
import { DecisionLogs } from './explanations/decision-log.ts'
import { createExplanationStore } from './explanations/store.ts'
import { keepIdleLobbies } from './idle-lobbies.ts'
import { registerMetrics } from './metrics/metrics.ts'
import { Projection } from './projection/projection.ts'
import { startRetention } from './retention.ts'
import { openAddressData } from './seats/address-data.ts'
import type { MatchmakerContext } from './seats/context.ts'
import { createAskGame } from './seats/verification/ask-game.ts'
import { Books } from './shards/books.ts'
import { holdLease, keepRenewing, releaseLease } from './shards/lease.ts'
import { watchEdgePlayers } from './watch/edge-players.ts'
import { watchPorts } from './watch/edge-ports.ts'
import { type EdgeReports, watchEdgeReports } from './watch/edge-reports.ts'
import { stopExpiredLobbies } from './watch/expired-namespaces.ts'
import { FailedStarts } from './watch/failed-starts.ts'
import { createNamespaces, type Namespaces } from './watch/namespaces.ts'
import { watchNodes } from './watch/nodes.ts'
import { notePlayedGuests } from './watch/played-guests.ts'
import { wakeReaders } from './watch/readers.ts'
import { type RunWatch, watchRuns } from './watch/runs.ts'
import { watchRunStarts } from './watch/starts.ts'

export type Matchmaker = {
  namespaces: Namespaces
  /** Throws API_NOT_AVAILABLE while another process leads, and after drain(). */
  context: () => MatchmakerContext
  /** Refuses new commands, and ends all waits for lobbies: the process is about to stop. */
  drain: () => void
  close: () => Promise<void>
}

/** Leads or stands by when it resolves. Closes what it has opened when it fails. */
export async function createMatchmaker(ctx: Context): Promise<Matchmaker> {
  await using opened = new AsyncDisposableStack()
  const namespaces = createNamespaces(ctx)
  opened.defer(() => namespaces.close())
  const ip_intelligence = openAddressData(ctx)
  opened.defer(() => ip_intelligence.close())
  const askProvider = createAskProvider(ctx)
  const askGame = createAskGame(ctx)
  const candidate = new Candidate(ctx, { namespaces, ip_intelligence, askProvider, askGame })
  opened.defer(() => candidate.close())
  registerMetrics(ctx, () => candidate.leadership())
  await candidate.start()
  const closing = opened.move()
  return {
    namespaces,
    context: () => candidate.context(),
    drain: () => candidate.drain(),
    close: () => closing.disposeAsync(),
  }
}

/** Takes the leadership when it gets the lease, and steps down when it loses it. One transition at a time. */
class Candidate {
  readonly #ctx: Context
  readonly #standing: Standing
  readonly #writer: string
  #leadership: Leadership | null = null
  /** Books that are being read. */
  #opening: Books | null = null
  #is_restart = true
  #is_draining = false
  #transition: Promise<void> = Promise.resolve()
  #endRenewing = (): void => {}

  constructor(ctx: Context, standing: Standing) {
    this.#ctx = ctx
    this.#standing = standing
    this.#writer = newId(ctx.now())
  }

  leadership(): Leadership | null {
    return this.#leadership
  }

  context(): MatchmakerContext {
    if (this.#leadership === null || this.#is_draining) {
      throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    }
    return this.#leadership.context
  }

  /** Throws when the first attempt fails. Later attempts are repeated with the next renewal of the lease. */
  async start(): Promise<void> {
    const first = this.#renew()
    this.#transition = first.catch(() => {})
    await first
    this.#endRenewing = keepRenewing(() => this.#enqueue(() => this.#renew()))
  }

  drain(): void {
    this.#is_draining = true
    this.#leadership?.books.endWaiting()
  }

  async close(): Promise<void> {
    this.#is_draining = true
    this.#endRenewing()
    // Books that cannot be read yet would be waited for without end.
    await this.#opening?.close()
    await this.#enqueue(() => this.#stepDown())
    await releaseLease(this.#ctx.pool, this.#writer).catch((error: unknown) =>
      this.#ctx.log.warn(
        { err: error },
        'the lease could not be released; the next matchmaker waits until it is stale',
      ),
    )
  }

  #enqueue(step: () => Promise<void>): Promise<void> {
    this.#transition = this.#transition
      .then(step)
      .catch((error: unknown) => this.#ctx.log.error({ err: error }, 'leadership change failed; retrying'))
    return this.#transition
  }

  async #renew(): Promise<void> {
    if (this.#is_draining) return
    const holder = { node_id: this.#ctx.config.node_id, writer: this.#writer, is_restart: this.#is_restart }
    const is_ours = await holdLease(this.#ctx.pool, holder)
    // Only the first attempt of a process may take the lease over from an earlier process of its node.
    this.#is_restart = false
    if (is_ours && this.#leadership === null) await this.#lead()
    if (!is_ours) await this.#stepDown()
  }

  async #lead(): Promise<void> {
    this.#leadership = await takeLeadership(this.#ctx, this.#standing, {
      onOpening: (books) => {
        this.#opening = books
      },
      onDeposed: (books) => {
        void this.#enqueue(async () => {
          if (this.#leadership?.books === books) await this.#stepDown()
        })
      },
    })
  }

  async #stepDown(): Promise<void> {
    const leadership = this.#leadership
    this.#leadership = null
    await leadership?.close()
  }
}

/** What a matchmaker has whether it leads or not. */
type Standing = Pick<MatchmakerContext, 'namespaces' | 'ip_intelligence' | 'askProvider' | 'askGame'>

type Leadership = {
  books: Books
  projection: Projection
  edge_reports: EdgeReports
  context: MatchmakerContext
  close: () => Promise<void>
}

/**
 * Opens what a leader has, in order; it is closed in reverse, also when one of the steps fails. Waits until all books
 * can be read. `onOpening` gets the books before they are read: closing them ends the wait.
 * `onDeposed` is called once, with these books, when another process has taken them over.
 */
async function takeLeadership(
  ctx: Context,
  standing: Standing,
  { onOpening, onDeposed }: { onOpening: (books: Books | null) => void; onDeposed: (books: Books) => void },
): Promise<Leadership> {
  await using opened = new AsyncDisposableStack()
  const explanations = createExplanationStore(ctx)
  opened.defer(() => explanations.close())
  const projection = new Projection(ctx.pool, ctx.log)
  opened.defer(() => projection.close())
  const { regions, node_capacity } = ctx.config
  const { pool, now, elapsed, log, metrics } = ctx
  const books: Books = new Books({
    ...{ pool, projection, regions, node_capacity, now, elapsed, log, metrics },
    idle_rules: UNREAD_IDLE_RULES,
    reported_ms: NONE_REPORTED_MS,
    onDeposed: () => onDeposed(books),
  })
  // They write what the last commits say, so they are closed after the books.
  const waker = wakeReaders(ctx.listener, books)
  opened.defer(() => waker.close())
  const played_guests = notePlayedGuests(ctx, books)
  opened.defer(() => played_guests.close())
  opened.defer(() => books.close())
  onOpening(books)
  opened.defer(() => onOpening(null))
  await books.open()
  onOpening(null)

  let runs: RunWatch | null = null
  const ports = await watchPorts(ctx, books)
  opened.defer(() => ports.close())
  const edge_reports = await watchEdgeReports(ctx, books)
  opened.defer(() => edge_reports.close())
  const edge_players = await watchEdgePlayers(ctx, books)
  opened.defer(() => edge_players.close())
  const nodes = await watchNodes(ctx, books, () => runs?.wake())
  opened.defer(() => nodes.close())
  const failed_starts = new FailedStarts(books)
  opened.defer(() => failed_starts.close())
  const run_starts = watchRunStarts(ctx, books)
  opened.defer(() => run_starts.close())
  runs = await watchRuns(ctx, books, failed_starts, nodes.shutNodes)
  opened.defer(() => runs?.close())
  const idle_lobbies = await keepIdleLobbies(ctx, books, standing.namespaces)
  opened.defer(() => idle_lobbies.close())
  const expired = stopExpiredLobbies(ctx, books)
  opened.defer(() => expired.close())
  const captcha_sweep = startCaptchaSweep(ctx)
  opened.defer(() => captcha_sweep.stop())
  const retention = startRetention(ctx, explanations, books.nowMs)
  opened.defer(() => retention.stop())

  const context: MatchmakerContext = {
    ...ctx,
    ...standing,
    books,
    run_starts,
    failed_starts,
    explanations,
    decision_logs: new DecisionLogs(ctx, explanations),
    open_requests: new Map(),
    solving: new Map(),
    verifying: new Map(),
    seat_texts: new WeakMap(),
  }
  const closing = opened.move()
  return { books, projection, edge_reports, context, close: () => closing.disposeAsync() }
}
