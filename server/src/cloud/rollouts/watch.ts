// Rolls a roll-out back when a limit that its developer has set is passed. Nothing is read while no roll-out with a limit is
// under way: a change of a namespace says that there may be one. Each api watches; the first that ends a roll-out ends it.
import { ApiError, endRollout, ROLLOUT_FAILURES_MIN, ROLLOUT_REFUSALS_MIN } from '@musterhost/contract'
import { asPlatform } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
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
  let working: Promise<void> | null = null
  let is_closed = false

  async function work(): Promise<void> {
    let is_watching = true
    const begin_ms = ctx.elapsed()
    try {
      is_watching = await checkAll(ctx)
    } catch (error) {
      ctx.log.warn({ err: error }, 'the roll-outs under way cannot be checked; trying again')
    }
    working = null
    const pause_ms = Math.max(READ_EVERY_MS, PAUSE_FACTOR * (ctx.elapsed() - begin_ms))
    if (is_watching && !is_closed) timer ??= setTimeout(wake, pause_ms)
  }

  function wake(): void {
    clearTimeout(timer)
    timer = undefined
    if (!is_closed) working ??= work()
  }

  // A change during a check is read by the next one.
  const unsubscribe = ctx.listener.on(CHANNELS.namespaces, () => {
    if (working === null) wake()
    else timer ??= setTimeout(wake, READ_EVERY_MS)
  })
  return {
    async close() {
      is_closed = true
      unsubscribe()
      clearTimeout(timer)
      await working
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
  const isPassed = (limit: number | null, part: number, all: number, part_min: number): limit is number =>
    limit !== null && part >= part_min && part * 100 > limit * all
  if (isPassed(failed_lobbies_percent_max, failed_lobby_count, lobby_count, ROLLOUT_FAILURES_MIN)) {
    return `${failed_lobby_count} of ${lobby_count} lobbies failed; the limit is ${failed_lobbies_percent_max} %.`
  }
  if (isPassed(refused_finds_percent_max, refused_find_count, find_count, ROLLOUT_REFUSALS_MIN)) {
    return `${refused_find_count} of ${find_count} finds were refused; the limit is ${refused_finds_percent_max} %.`
  }
  return null
}
