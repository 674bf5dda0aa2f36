// Finds for the two versions of a roll-out, and those that failed through the version. A find adds one to a count in memory
// while a roll-out is under way; the counts are added to the table every second. A crash loses those since the last write.
//
// A client can provoke most refusals, and so could end a roll-out. Only those count that a client has no part in.
import { ApiError, type ErrorCode } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { ASYNCHRONOUS } from '../../database/asynchronous.ts'

const WRITE_EVERY_MS = 1_000
/** Pairs of a roll-out and a version whose counts wait. Finds for more are not counted. */
const COUNTS_MAX = 10_000

const FAILURES: ReadonlySet<ErrorCode> = new Set([
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_LOBBY_NOT_STARTED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
])

/** The roll-out under way, and the version that a request got of the two. */
export type RolloutVersion = { rollout_id: string; version_id: string }
type Counts = RolloutVersion & { find_count: number; refused_count: number }

export type RolloutFinds = {
  /** `error`: null for a seat. Other refusals than those of the version are not counted. */
  add: (of: RolloutVersion, error: unknown) => void
  close: () => Promise<void>
}

export function countRolloutFinds({ pool, log }: Pick<Context, 'pool' | 'log'>): RolloutFinds {
  const waiting = new Map<string, Counts>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let writing: Promise<void> = Promise.resolve()

  function put({ rollout_id, version_id, find_count, refused_count }: Counts): void {
    const key = `${rollout_id}\n${version_id}`
    const counts = waiting.get(key)
    if (counts !== undefined) {
      counts.find_count += find_count
      counts.refused_count += refused_count
    } else if (waiting.size < COUNTS_MAX) waiting.set(key, { rollout_id, version_id, find_count, refused_count })
  }

  function write(): void {
    clearTimeout(timer)
    timer = undefined
    writing = writing.then(writeAll)
  }

  /** Counts that cannot be written wait for the next find. */
  async function writeAll(): Promise<void> {
    // In the order of their keys: two processes that write the same rows wait for each other, and never in a circle.
    const counts = [...waiting].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
    waiting.clear()
    if (counts.length === 0) return
    try {
      await pool.query({ name: 'rollout-finds', text: ADD_SQL, values: columnsOf(counts) })
    } catch (error) {
      log.warn({ err: error }, 'the finds of a roll-out cannot be written; trying again later')
      for (const one of counts) put(one)
    }
  }

  return {
    add({ rollout_id, version_id }, error) {
      const is_refused = error instanceof ApiError && FAILURES.has(error.code)
      if (error !== null && !is_refused) return
      put({ rollout_id, version_id, find_count: 1, refused_count: is_refused ? 1 : 0 })
      timer ??= setTimeout(write, WRITE_EVERY_MS)
    },
    async close() {
      write()
      await writing
    },
  }
}

const columnsOf = (counts: readonly Counts[]): unknown[] => [
  counts.map(({ rollout_id }) => rollout_id),
  counts.map(({ version_id }) => version_id),
  counts.map(({ find_count }) => find_count),
  counts.map(({ refused_count }) => refused_count),
]

/** The namespace may have been deleted in the meantime, and its roll-outs with it. */
const ADD_SQL = `
  insert into rollout_finds (rollout_id, version_id, find_count, refused_count)
  select rollout_id, counted.version_id, find_count, refused_count
  from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])
    as counted (rollout_id, version_id, find_count, refused_count) join rollouts using (rollout_id), ${ASYNCHRONOUS}
  order by rollout_id, counted.version_id
  on conflict (rollout_id, version_id) do update set
    find_count = rollout_finds.find_count + excluded.find_count,
    refused_count = rollout_finds.refused_count + excluded.refused_count`
