// The runner role: lobbies into processes. It opens the machine's driver, takes over what lives from before, and then
// lets the loop (reconcile.ts) compare at every wake-up and every second. It listens nowhere.
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import type { Context, RunningRole } from '../context.ts'
import { startSweeper } from '../database/sweeper.ts'
import { openBuilds } from './builds.ts'
import { startDiskReport } from './disk.ts'
import { createProcessDriver } from './drivers/process.ts'
import { answerLogQuestions } from './logs/answers.ts'
import { createPorts, PORT_COUNT } from './ports.ts'
import { createLoop } from './reconcile.ts'
import { removeOldRuns } from './rows.ts'
import { createStartRays } from './start-rays.ts'

/** What a lost wake-up costs. */
const RECONCILE_MS = 1_000
const SWEEP_MS = 5_000
const SWEEP_RUNS_MS = 60_000

/**
 * Serves all regions of the config. Throws a StartError where this machine cannot run lobbies. `stop` with
 * `end_lobbies` ends them all and records it; without, they run on and are found again by the next start.
 */
export async function startRunner(ctx: Context): Promise<RunningRole> {
  const wakes = { wake: (): void => undefined }
  const { data_dir, sandbox, retention, lobbies } = ctx.config
  const driver = await createProcessDriver({
    data_dir,
    sandbox,
    log: ctx.log,
    now: ctx.now,
    ended_kept_ms: retention.logs_ms,
    ended_bytes_max: lobbies.ended_logs_bytes_max,
    onEnd: () => wakes.wake(),
  })
  const builds = await openBuilds(ctx, join(data_dir, 'builds'), () => wakes.wake())
  const rays = createStartRays(ctx)
  const loop = createLoop(ctx, driver, builds, createPorts(randomInt(PORT_COUNT)), rays)
  try {
    await loop.adopt()
  } catch (error) {
    rays.close()
    await driver.close({ logger: 'keep' })
    throw error
  }
  wakes.wake = loop.wake
  const unsubscribe = ctx.listener.on('lobbies', loop.wake)
  const ticking = setInterval(() => {
    loop.wake()
    loop.measure()
  }, RECONCILE_MS)
  const sweeping = setInterval(loop.sweep, SWEEP_MS)
  const sweeper = startSweeper(ctx.log, SWEEP_RUNS_MS, [{ what: 'runs', remove: () => removeOldRuns(ctx) }])
  const disk_report = startDiskReport(ctx)
  const answers = answerLogQuestions(ctx)
  loop.wake()

  return {
    address: null,
    async stop({ end_lobbies }) {
      clearInterval(ticking)
      clearInterval(sweeping)
      await sweeper.stop()
      await disk_report.close()
      await answers.close()
      unsubscribe()
      rays.close()
      await loop.close()
      if (end_lobbies) await loop.endAll()
      await driver.close({ logger: end_lobbies ? 'end' : 'keep' })
    },
  }
}
