// The program: reads the config, opens the context, starts the configured roles and stops them in reverse order. Under the
// supervisor each role is a separate process, which reports over the IPC channel when it is ready. It stops on a message of
// the supervisor, or when the channel closes. Without a supervisor (`node server/src/main.ts`, as in production)
// DATABASE_URL names the database, and the program migrates it.
import { flushCompileCache } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import { CONFIG_EXIT_CODE, ConfigError, readConfig } from './config/read-config.ts'
import type { Role } from './config/roles.ts'
import { StartError, startSentence } from './config/start-error.ts'
import { type Context, type ContextOptions, openContext, type RunningRole } from './context.ts'
import { migrate } from './database/migrate.ts'
import { collectStartGarbage } from './node/start-garbage.ts'
import { createLog, writeLogTo } from './observe/log.ts'
import { type OperatorPort, openOperatorPort } from './observe/operator-port.ts'
import { credentialsOf } from './observe/redact.ts'
import { adminToken, requireFinishedRestore } from './supervisor/folders.ts'
import { parseSupervisorMessage, type RoleMessage, STOP_MS_MAX } from './supervisor/messages.ts'

/** Time in which the event loop must become empty after everything was closed. Then the process exits. */
const EMPTY_LOOP_MS_MAX = 3_000

/** The code of a role is loaded with the role, so that a restart of the edge does not load the api's libraries. */
const START: Record<Role, (ctx: Context) => Promise<RunningRole>> = {
  api: async (ctx) => (await import('./roles/api.ts')).startApi(ctx),
  matchmaker: async (ctx) => (await import('./roles/matchmaker.ts')).startMatchmaker(ctx),
  runner: async (ctx) => (await import('./runner/start.ts')).startRunner(ctx),
  edge: async (ctx) => (await import('./edge/start.ts')).startEdge(ctx),
}

/** Most roles never retire. */
const NEVER = new Promise<void>(() => {})

export type RunningRoles = {
  ctx: Context
  /** The address of each role; null for one without a listener, absent for one that is not configured. */
  addresses: Partial<Record<Role, string | null>>
  /** Resolves when another process has taken over what this one did. */
  retired: Promise<{ end_lobbies: false }>
  /** Stops the roles in the reverse order of `ROLES`, then closes the context. A second call waits for the first. */
  stop(how: { end_lobbies: boolean }): Promise<void>
}

/**
 * Starts `config.roles` in this process, on the migrated database of `config.database_url`. When one cannot start, the
 * others are stopped and its error is thrown.
 */
export async function startRoles(config: Config, options: ContextOptions = {}): Promise<RunningRoles> {
  const ctx = await openContext(config, options)
  let port = config.metrics && (await openOperatorPort(config.metrics, ctx, { tries_again: true }))
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
      ctx.log.error({ err: error }, 'process did not stop in good order after a failed start')
    })
    throw failures[0]
  }
  // The process that was replaced had the port until now.
  if (config.metrics !== null) port ??= await openOperatorPort(config.metrics, ctx, { tries_again: false })
  for (const { handed_over } of running) {
    void handed_over?.then(async () => {
      const closed = port?.close()
      port = null
      await closed
    })
  }
  ctx.health.started()
  const retirements = running.map(({ retired }) => retired ?? NEVER)
  const retired = Promise.race([NEVER, ...retirements]).then(() => ({ end_lobbies: false as const }))
  return { ctx, addresses, retired, stop }
}

/** A role that fails to stop does not prevent the others from stopping. The first failure is thrown at the end. */
async function stopAll(
  ctx: Context,
  running: readonly RunningRole[],
  port: OperatorPort | null,
  how: { end_lobbies: boolean },
): Promise<void> {
  const failures: unknown[] = []
  // A load balancer must know it before anything stops.
  ctx.health.stopping()
  for (const role of running.toReversed()) {
    await role.stop(how).catch((error: unknown) => failures.push(error))
  }
  await port?.close()
  await ctx.close().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** The whole life of a process of the platform. It ends with an empty event loop and `process.exitCode`. */
async function runProcess(env: NodeJS.ProcessEnv): Promise<void> {
  const supervised = process.send !== undefined
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    sendToSupervisor({ kind: 'failed', reason: error.message })
    console.error(error.message)
    process.exitCode = CONFIG_EXIT_CODE
    if (supervised) process.disconnect?.()
    return
  }
  const log = createLog({ who: config.roles.join(','), level: config.log_level, secrets: credentialsOf(config) })
  exitOnUncaught(log)

  const stop_request = listenForStop(supervised, log)
  const running = await startOrReport(config, log, supervised)
  if (running === null) {
    process.exitCode = 1
    return leave(log, supervised)
  }
  collectStartGarbage()
  for (const role of config.roles) {
    sendToSupervisor({ kind: 'ready', role, address: running.addresses[role] ?? null })
  }
  log.info({ addresses: running.addresses }, 'ready')
  // Compiled modules are stored now: a process that is killed later would not store them.
  flushCompileCache()

  const how = await Promise.race([stop_request, running.retired])
  log.info(how, 'stopping')
  running.ctx.health.stopping()
  if (!supervised && !how.end_lobbies) await delay(config.drain_ms)
  const overdue = setTimeout(() => forceExit(log), STOP_MS_MAX)
  await running.stop(how).catch((error: unknown) => {
    log.error({ err: error }, 'process did not stop in good order')
    process.exitCode = 1
  })
  clearTimeout(overdue)
  leave(log, supervised)
}

function sendToSupervisor(message: RoleMessage): void {
  if (process.connected) process.send?.(message)
}

function exitOnUncaught(log: Logger): void {
  const exit = (error: unknown, origin: string): void => {
    log.fatal({ err: error, origin }, 'uncaught error; exiting')
    process.exit(1)
  }
  process.on('uncaughtException', exit)
  process.on('unhandledRejection', (reason) => exit(reason, 'unhandledRejection'))
}

/** Null when the start failed, which is logged and reported to the supervisor. */
async function startOrReport(config: Config, log: Logger, supervised: boolean): Promise<RunningRoles | null> {
  try {
    // The supervisor migrates the database before it starts any role.
    if (!supervised) {
      requireFinishedRestore(config.data_dir)
      await migrateFirst(config, log)
    }
    const running = await startRoles(config, { log })
    // Without a supervisor the api alone makes the token: if two roles made one, only the last would remain.
    if (!supervised && config.roles.includes('api')) {
      const { file } = adminToken(config, running.ctx.keys, running.ctx.now())
      log.info({ file }, 'the admin token is in this file')
    }
    return running
  } catch (error) {
    const reason = startSentence(error, config)
    // The supervisor shows the reason. The log file gets the whole error.
    log[supervised ? 'info' : 'error'](error instanceof StartError ? {} : { err: error }, reason)
    sendToSupervisor({ kind: 'failed', reason })
    return null
  }
}

/**
 * Resolves at the first request to stop. A second SIGTERM has its default effect. Under a supervisor Ctrl-C is ignored: the
 * terminal sends it to every process at once, and the supervisor stops the roles in their order.
 */
function listenForStop(supervised: boolean, log: Logger): Promise<{ end_lobbies: boolean }> {
  let is_staying = false
  const { promise, resolve } = Promise.withResolvers<{ end_lobbies: boolean }>()
  process.once('SIGTERM', () => resolve({ end_lobbies: false }))
  if (supervised) {
    process.on('SIGINT', () => {})
    process.on('SIGHUP', () => {})
    process.on('disconnect', () => {
      if (!is_staying) resolve({ end_lobbies: false })
    })
    process.on('message', (value) => {
      const message = parseSupervisorMessage(value)
      if (message?.kind === 'stop') resolve({ end_lobbies: message.end_lobbies })
      if (message?.kind !== 'stay') return
      is_staying = true
      // The supervisor reads the standard output no more.
      writeLogTo(log, message.log_path)
      for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
      sendToSupervisor({ kind: 'staying' })
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

/** Everything has been closed: disconnects from the supervisor, and exits if the event loop does not become empty. */
function leave(log: Logger, supervised: boolean): void {
  if (supervised && process.connected) process.disconnect?.()
  setTimeout(() => forceExit(log), EMPTY_LOOP_MS_MAX).unref()
}

function forceExit(log: Logger): void {
  log.fatal({ still_open: process.getActiveResourcesInfo() }, 'this process does not end and is cut off')
  process.exit(1)
}

if (import.meta.main) await runProcess(process.env)
