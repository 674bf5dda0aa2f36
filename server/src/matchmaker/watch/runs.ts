// Follows the runs of lobbies of this process's shards, which the runner writes to lobby_runs. A lobby whose run has ended is stopped here. One whose
// server does not respond is stalled until it does, as are the lobbies of nodes that are shut (nodes.ts). One whose server was
// seen to be ready is ready, as if the server had called it. The node of a lobby is the one that runs it. Runs are read when
// the runner sends a notification, when a shard comes to this process, and every RUNS_EVERY_MS in case a notification was lost.
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import type { RunEnd } from '../../database/schema.ts'
import { CHANNELS } from '../../wire/channels.ts'
import * as decide from '../book/decide.ts'
import type { Books } from '../shards/books.ts'
import { ShardMoved } from '../shards/shard-moved.ts'
import type { FailedStarts } from './failed-starts.ts'

const RUNS_EVERY_MS = 10_000
/** When a read that failed is made again. */
const RETRY_MS = 1_000
/** How long a matchmaker that starts waits for the first read. */
const RUNS_START_MS_MAX = 5_000
/** Changed runs that are read together; the next ones follow at once. */
const RUNS_MAX = 500
/** Before all ids. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

/** What the projection does not show yet, or never will. */
const changedWith = (shut_nodes: readonly string[]) => sql<boolean>`(
  exit_ts is not null or ${stalledWith(shut_nodes)} <> is_stalled or lobbies.node_id is distinct from runner_id
  or (seen_ready_ts is not null and lobbies.ready_ts is null)
)`
const stalledWith = (shut_nodes: readonly string[]) =>
  sql<boolean>`(stall_ts is not null or coalesce(lobbies.node_id = any(${shut_nodes}), false))`

type ChangedRun = RunEnd & {
  lobby_id: string
  namespace_id: string
  exit_ts: Date | null
  must_stall: boolean
  runner_id: string
  is_placed: boolean
  is_seen_ready: boolean
}

/** The next holder of the shard reads the run. */
function ignoreMoved(error: unknown): void {
  if (!(error instanceof ShardMoved)) throw error
}

export type RunWatch = Pick<Watch, 'close'> & {
  /** Something besides the runs has changed. */
  wake: () => void
}

/** Resolves when the runs that changed before have been read, so that no request gets a seat in an ended lobby. */
export async function watchRuns(
  ctx: Pick<Context, 'db' | 'listener' | 'log'>,
  books: Books,
  failed_starts: Pick<FailedStarts, 'ended'>,
  shutNodes: () => readonly string[],
): Promise<RunWatch> {
  let is_closed = false

  async function follow({
    namespace_id,
    lobby_id,
    exit_ts,
    must_stall,
    runner_id,
    is_placed,
    is_seen_ready,
    ...end
  }: ChangedRun): Promise<void> {
    if (exit_ts !== null) {
      await failed_starts.ended(lobby_id, end, () =>
        books.commit(namespace_id, (book, { now_ms }) => decide.stop(book, lobby_id, 'exited', now_ms)),
      )
      return
    }
    if (!is_placed) await books.commit(namespace_id, (book) => decide.assignNode(book, lobby_id, runner_id))
    if (is_seen_ready) {
      await books.commit(namespace_id, (book, { now_ms }) => decide.seenReady(book, lobby_id, now_ms))
    }
    await books.commit(namespace_id, (book, { now_ms }) => decide.setStalled(book, lobby_id, must_stall, now_ms))
  }

  /** In the order of ids: the table still shows the runs that were just handled unchanged. */
  async function readAll(): Promise<void> {
    let after: string | null = NO_ID
    const shut = shutNodes()
    while (after !== null && !is_closed) {
      const runs = await ctx.db
        .selectFrom('lobbies')
        .innerJoin('lobby_runs', 'lobby_runs.lobby_id', 'lobbies.lobby_id')
        .where('lobbies.stop_ts', 'is', null)
        .where(changedWith(shut))
        .where('lobbies.shard', '=', sql<number>`any(${books.shards()})`)
        .where('lobbies.lobby_id', '>', after)
        .select(['lobbies.lobby_id', 'lobbies.namespace_id', 'exit_ts', 'exit_reason', 'exit_code', 'runner_id'])
        .select(stalledWith(shut).as('must_stall'))
        .select(sql<boolean>`lobbies.node_id is not distinct from runner_id`.as('is_placed'))
        .select(sql<boolean>`seen_ready_ts is not null`.as('is_seen_ready'))
        .orderBy('lobbies.lobby_id')
        .limit(RUNS_MAX)
        .execute()
      await Promise.all(runs.map((run) => follow(run).catch(ignoreMoved)))
      after = runs.length < RUNS_MAX ? null : runs.at(-1)!.lobby_id
    }
  }

  const watch = watchChannel(ctx, {
    channel: CHANNELS.lobby_runs,
    every_ms: RUNS_EVERY_MS,
    retry_ms: RETRY_MS,
    run: readAll,
    failure: 'lobby runs could not be read; trying again',
  })
  const endCommits = books.onCommits({ onCommit() {}, onReload: watch.wake })
  await Promise.race([watch.running(), delay(RUNS_START_MS_MAX, undefined, { ref: false })])
  return {
    wake: watch.wake,
    close() {
      is_closed = true
      endCommits()
      return watch.close()
    },
  }
}
