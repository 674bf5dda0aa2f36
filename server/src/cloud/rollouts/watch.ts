// Rolls a roll-out back when a limit that its developer has set is passed. Nothing is read while no roll-out with a limit is
// under way: a change of a namespace says that there may be one. Each api watches; the first that ends a roll-out ends it.
import { ApiError, endRollout, ROLLOUT_FAILURES_MIN, ROLLOUT_REFUSALS_MIN } from '@musterhost/contract'
import { asPlatform } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { type FiguredRollout, type RolloutFigures, readFigures } from './figures.ts'
import { finishRollout } from './rollouts.ts'

/** How often the figures of the roll-outs under way are read. */
const READ_EVERY_MS = 2_000
/** The pause after a check, as a multiple of its duration: the checks of large games keep the database free. */
const PAUSE_FACTOR = 20
/** Roll-outs that are watched at the same time. */
const WATCHED_MAX = 1_000

type Limits = { failed_lobbies_percent_max: number | null; refused_finds_percent_max: number | null }
type Watched = FiguredRollout & Limits & { game_id: string }

export type RolloutWatch = { close: () => Promise<void> }

export function watchRollouts(ctx: Context): RolloutWatch {
  let timer: ReturnType<typeof setTimeout> | undefined
  const poller = createPoller(ctx, {
    async run() {
      clearTimeout(timer)
      const begin_ms = ctx.elapsed()
      if (!(await checkAll(ctx))) return
      timer = setTimeout(poller.wake, Math.max(READ_EVERY_MS, PAUSE_FACTOR * (ctx.elapsed() - begin_ms)))
    },
    failure: 'the roll-outs under way cannot be checked; trying again',
    retry_ms: READ_EVERY_MS,
  })
  const unsubscribe = ctx.listener.on(CHANNELS.namespaces, poller.wake)
  return {
    async close() {
      unsubscribe()
      await poller.close()
      clearTimeout(timer)
    },
  }
}

/** Returns whether a roll-out with a limit is under way. */
async function checkAll(ctx: Context): Promise<boolean> {
  const watched: Watched[] = await ctx.db
    .selectFrom('rollouts')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'rollouts.namespace_id')
    .selectAll('rollouts')
    .select('namespaces.game_id')
    .where('end_ts', 'is', null)
    .where((is) =>
      is.or([is('failed_lobbies_percent_max', 'is not', null), is('refused_finds_percent_max', 'is not', null)]),
    )
    .limit(WATCHED_MAX)
    .execute()
  for (const rollout of watched) await check(ctx, rollout)
  return watched.length > 0
}

async function check(ctx: Context, rollout: Watched): Promise<void> {
  const { rollout_id, game_id, namespace_id, version_id } = rollout
  const reason = passedLimit(rollout, (await readFigures(ctx, rollout)).rollout)
  if (reason === null) return
  try {
    const end = { outcome: 'rolled_back', reason } as const
    await finishRollout(asPlatform(ctx, endRollout.id), null, { game_id, namespace_id }, end, rollout_id)
    ctx.log.warn({ rollout_id, namespace_id, version_id, reason }, 'a roll-out was rolled back')
  } catch (error) {
    // It has ended a moment ago.
    if (error instanceof ApiError && (error.code === 'ROLLOUT_NOT_UNDER_WAY' || error.code === 'NAMESPACE_NOT_FOUND'))
      return
    throw error
  }
}

/** The limit that was passed, as a sentence; null: none. */
export function passedLimit(
  { failed_lobbies_percent_max, refused_finds_percent_max }: Limits,
  { lobby_count, failed_lobby_count, find_count, refused_find_count }: RolloutFigures['rollout'],
): string | null {
  const isPassed = (limit: number | null, part: number, all: number, part_min: number): boolean =>
    limit !== null && part >= part_min && part * 100 > limit * all
  if (isPassed(failed_lobbies_percent_max, failed_lobby_count, lobby_count, ROLLOUT_FAILURES_MIN)) {
    return `${failed_lobby_count} of ${lobby_count} lobbies failed; the limit is ${failed_lobbies_percent_max} %.`
  }
  if (isPassed(refused_finds_percent_max, refused_find_count, find_count, ROLLOUT_REFUSALS_MIN)) {
    return `${refused_find_count} of ${find_count} finds were refused; the limit is ${refused_finds_percent_max} %.`
  }
  return null
}
