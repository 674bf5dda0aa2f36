// The program: reads the config, opens the context, starts the configured roles and stops them in reverse. Under the
// supervisor each role is a process of its own. It reports over the IPC channel when it is ready, receives over it when to
// stop, and stops when the channel closes. Without a supervisor (`node server/src/main.ts`, as in production) DATABASE_URL
// names the database, and the program migrates it.

import { flushCompileCache } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { CONFIG_EXIT_CODE, type Config, ConfigError, readConfig } from './config/config.ts'
import type { Role } from './config/roles.ts'
import { type Context, type ContextOptions, openContext, type RunningRole } from './context.ts'
import { migrate } from './database/migrate.ts'
import { createLog } from './observe/log.ts'
import { type OperatorPort, openOperatorPort } from './observe/operator-port.ts'
import { credentialsOf } from './observe/redact.ts'
import { StartError, startSentence } from './start-error.ts'
import { collectStartGarbage } from './start-garbage.ts'
import { adminToken, requireFinishedRestore } from './supervisor/folders.ts'
import { parseSupervisorMessage, type RoleMessage, STOP_MS_MAX } from './supervisor/messages.ts'

/** Time for the event loop to empty after everything has been closed. */
const EMPTY_LOOP_MS_MAX = 3_000

/** A role's code is loaded only when it is asked for: a restart of the edge must not wait for the api's libraries. */
const START: Record<Role, (ctx: Context) => Promise<RunningRole>> = {
  api: async (ctx) => (await import('./roles/api.ts')).startApi(ctx),
  matchmaker: async (ctx) => (await import('./roles/matchmaker.ts')).startMatchmaker(ctx),
  runner: async (ctx) => (await import('./runner/start.ts')).startRunner(ctx),
  edge: async (ctx) => (await import('./edge/start.ts')).startEdge(ctx),
}

export type RunningRoles = {
  ctx: Context
  /** Where each role listens; null for one that listens nowhere, absent for one that was not asked for. */
  addresses: Partial<Record<Role, string | null>>
  /** Stops the roles in the reverse order of `ROLES`, then closes the context. A second call waits for the first. */
  stop(how: { end_lobbies: boolean }): Promise<void>
}

/**
 * Starts `config.roles` in this process, on the migrated database of `config.database_url`. When one cannot start, the
 * others are stopped and its error is thrown.
 */
export async function startRoles(config: Config, options: ContextOptions = {}): Promise<RunningRoles> {
  const ctx = await openContext(config, options)
  const port = config.metrics && (await openOperatorPort(config.metrics, ctx))
  const outcomes = await Promise.allSettled(config.roles.map((role) => START[role](ctx)))
  const addresses: Partial<Record<Role, string | null>> = {}
  const running: RunningRole[] = []
  const failures: unknown[] = []
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') {
      failures.push(outcome.reason)
      continue
    }
    const role = config.roles[index]
    if (role) addresses[role] = outcome.value.address
    running.push(outcome.value)
  }

  let stopped: Promise<void> | null = null
  const stop = (how: { end_lobbies: boolean }): Promise<void> => {
    stopped ??= stopAll(ctx, running, port, how)
    return stopped
  }
  if (failures.length > 0) {
    await stop({ end_lobbies: false }).catch((error: unknown) => {
      ctx.log.error({ err: error }, 'After a failed start, a part did not stop as it should.')
    })
    throw failures[0]
  }
  ctx.health.started()
  return { ctx, addresses, stop }
}

/** One role that fails to stop must not keep the others from stopping; the first failure is thrown at the end. */
async function stopAll(
  ctx: Context,
  running: readonly RunningRole[],
  port: OperatorPort | null,
  how: { end_lobbies: boolean },
): Promise<void> {
  const failures: unknown[] = []
  // Load balancers learn that this process is stopping before anything stops.
  ctx.health.stopping()
  for (const role of running.toReversed()) {
    await role.stop(how).catch((error: unknown) => failures.push(error))
  }
  await port?.close()
  await ctx.close().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** The whole life of a process of the platform. Its end is an empty event loop and `process.exitCode`. */
async function runProcess(env: NodeJS.ProcessEnv): Promise<void> {
  const supervised = process.send !== undefined
  const tell = (message: RoleMessage): void => {
    if (process.connected) process.send?.(message)
  }
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    tell({ kind: 'failed', reason: error.message })
    console.error(error.message)
    process.exitCode = CONFIG_EXIT_CODE
    if (supervised) process.disconnect?.()
    return
  }

  const log = createLog({ who: config.roles.join(','), level: config.log_level, secrets: credentialsOf(config) })
  const die = (error: unknown, origin: string): void => {
    log.fatal(
      { err: error, origin },
      'A fault that nobody caught: this process ends, so that a new one takes its place.',
    )
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', (reason) => die(reason, 'unhandledRejection'))

  const wish = listenForStop(supervised)
  let running: RunningRoles
  try {
    // Under the supervisor the database has been migrated before any role was started.
    if (!supervised) {
      requireFinishedRestore(config.data_dir)
      await migrateFirst(config, log)
    }
    running = await startRoles(config, { log })
    // The supervisor makes it otherwise. One role makes it alone: of two that did, only the last would be kept.
    if (!supervised && config.roles.includes('api')) {
      const { file } = adminToken(config, running.ctx.keys, running.ctx.now())
      log.info({ file }, 'the admin token is in this file')
    }
  } catch (error) {
    const reason = startSentence(error, config)
    // The supervisor shows the reason itself; the line with everything is for the file.
    log[supervised ? 'info' : 'error'](error instanceof StartError ? {} : { err: error }, reason)
    tell({ kind: 'failed', reason })
    process.exitCode = 1
    return leave(log, supervised)
  }
  collectStartGarbage()
  for (const role of config.roles) tell({ kind: 'ready', role, address: running.addresses[role] ?? null })
  log.info({ addresses: running.addresses }, 'ready')
  // What was compiled is kept now, not at the end: a process that is killed has an end of its own.
  flushCompileCache()

  const how = await wish
  log.info(how, 'stopping')
  running.ctx.health.stopping()
  if (!supervised && !how.end_lobbies) await delay(config.drain_ms)
  const overdue = setTimeout(() => lastResort(log), STOP_MS_MAX)
  await running.stop(how).catch((error: unknown) => {
    log.error({ err: error }, 'A part did not stop as it should.')
    process.exitCode = 1
  })
  clearTimeout(overdue)
  leave(log, supervised)
}

/**
 * Resolves at the first request to stop; a second SIGTERM has its default effect. A supervised process ignores Ctrl-C: the
 * terminal sends it to every process at once, and the order of stopping would be lost. The supervisor stops it instead.
 */
function listenForStop(supervised: boolean): Promise<{ end_lobbies: boolean }> {
  const { promise, resolve } = Promise.withResolvers<{ end_lobbies: boolean }>()
  process.once('SIGTERM', () => resolve({ end_lobbies: false }))
  if (supervised) {
    process.on('SIGINT', () => {})
    process.on('SIGHUP', () => {})
    process.on('disconnect', () => resolve({ end_lobbies: false }))
    process.on('message', (value) => {
      const message = parseSupervisorMessage(value)
      if (message) resolve({ end_lobbies: message.end_lobbies })
    })
  } else {
    process.once('SIGINT', () => resolve({ end_lobbies: true }))
  }
  return promise
}

async function migrateFirst(config: Config, log: Logger): Promise<void> {
  const ctx = await openContext(config, { log })
  try {
    await migrate(ctx.db)
  } finally {
    await ctx.close()
  }
}

/** Everything has been closed: lets go of the channel, and of the process should something still hold it. */
function leave(log: Logger, supervised: boolean): void {
  if (supervised && process.connected) process.disconnect?.()
  setTimeout(() => lastResort(log), EMPTY_LOOP_MS_MAX).unref()
}

function lastResort(log: Logger): void {
  log.fatal({ still_open: process.getActiveResourcesInfo() }, 'this process does not end and is cut off')
  process.exit(1)
}

if (import.meta.main) await runProcess(process.env)
