// The runner role turns lobbies into processes. It opens the machine's driver, takes over the runs that live from before,
// and runs the reconcile loop (reconcile.ts) at every wake-up and every few seconds. It listens on no port.
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import type { Context, RunningRole } from '../context.ts'
import { startSweeper } from '../database/sweeper.ts'
import { openBuilds } from './builds.ts'
import { BuildsAhead } from './builds-ahead.ts'
import type { Driver } from './drivers/driver.ts'
import { useDriver } from './drivers/driver-choice.ts'
import { LogAnswers } from './logs/answers.ts'
import { networkOptions } from './network/options.ts'
import { listenForNodes } from './node-channels.ts'
import { createPorts, PORT_COUNT } from './ports.ts'
import { ReconcileLoop } from './reconcile.ts'
import { startReport } from './report.ts'
import { removeOldRuns } from './rows.ts'
import { StartTraces } from './start-trace.ts'

/** How often the loop passes without a wake-up: the delay when a notification is lost. Law L6 allows 5 s. */
const RECONCILE_MS = 3_000
/** How often processes that have ended, and servers that do not respond, are searched. */
const MEASURE_MS = 1_000
/** How often unused things are removed while lobbies have ended lately, and while none has. */
const SWEEP_MS = 5_000
const SWEEP_AT_REST_MS = 20_000
const SWEEP_RUNS_MS = 60_000

/**
 * Serves the regions of `runner_regions`. Throws a StartError where this machine cannot run lobbies. `stop` with `end_lobbies`
 * ends all lobbies and records their exits; otherwise they continue, and the next start takes them over.
 */
export async function startRunner(ctx: Context): Promise<RunningRole> {
  const wakes = { wake: (): void => undefined, unpackNext: (): void => undefined }
  const { data_dir } = ctx.config
  const driver = await openDriver(ctx, () => wakes.wake())
  const builds = await openBuilds(ctx, join(data_dir, 'builds'), driver.images, () => {
    wakes.wake()
    wakes.unpackNext()
  })
  const traces = new StartTraces(ctx)
  const ports = createPorts(randomInt(PORT_COUNT))
  const loop = new ReconcileLoop(ctx, driver, builds, ports, traces)
  try {
    await loop.adopt()
  } catch (error) {
    traces.close()
    await driver.close({ logger: 'keep' })
    throw error
  }
  wakes.wake = loop.wake
  const unsubscribe = listenForNodes(ctx, loop.node_ids, {
    lobbies: loop.wake,
    lobby_ready: (lobby_id) => traces.ready(lobby_id),
  })
  const timers = [
    setInterval(() => loop.wake(), RECONCILE_MS),
    setInterval(() => loop.measure(), MEASURE_MS),
    setInterval(() => loop.has_ended_runs && loop.sweep(), SWEEP_MS),
    setInterval(() => !loop.has_ended_runs && loop.sweep(), SWEEP_AT_REST_MS),
  ]
  const sweeper = startSweeper(ctx, 'runner', SWEEP_RUNS_MS, [{ what: 'runs', remove: () => removeOldRuns(ctx) }])
  const report = startReport(ctx, ports, driver.nodes)
  const answers = new LogAnswers(ctx, driver)
  loop.wake()
  // A joined node may read the builds of its own lobbies only.
  const ahead = ctx.config.link === null ? new BuildsAhead(ctx, builds) : null
  if (ahead !== null) wakes.unpackNext = () => ahead.next()

  return {
    address: null,
    async stop({ end_lobbies }) {
      for (const timer of timers) clearInterval(timer)
      await sweeper.stop()
      await report.close()
      await ahead?.close()
      await answers.close()
      unsubscribe()
      traces.close()
      await loop.close()
      if (end_lobbies) await loop.endAll()
      await driver.close({ logger: end_lobbies ? 'end' : 'keep' })
    },
  }
}

/** Loads the code of this driver only. */
async function openDriver(ctx: Context, onEnd: () => void): Promise<Driver> {
  const { data_dir, sandbox, retention, lobbies, driver, docker } = ctx.config
  useDriver(data_dir, driver)
  const options = {
    data_dir,
    log: ctx.log,
    now: ctx.now,
    ended_kept_ms: retention.logs_ms,
    ended_bytes_max: lobbies.ended_logs_bytes_max,
    onEnd,
    sandbox,
    network: networkOptions(ctx.config),
  }
  if (driver === 'docker') {
    const { openDockerDriver } = await import('./drivers/docker/docker.ts')
    return openDockerDriver({ ...options, docker })
  }
  if (driver === 'process') {
    const { openProcessDriver } = await import('./drivers/process/process.ts')
    return openProcessDriver(options)
  }
  const { swarm, registries, registry_auth_file, node_grace_ms } = ctx.config
  const images = { base_image: docker.base_image, registries: { registries, registry_auth_file } }
  const { openSwarmDriver } = await import('./drivers/swarm/swarm.ts')
  return openSwarmDriver({ ...options, ...images, swarm, node_grace_ms })
}
