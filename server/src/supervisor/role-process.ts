// One role as a process of its own, kept alive. States: starting -> ready -> died -> (a delay) -> starting..., and
// stopping -> stopped once it was asked to stop. The process leads a session of its own, so that Ctrl-C on the terminal
// reaches only the supervisor, which stops the parts in their order.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ROLE_FLAGS, type Role } from '../config/roles.ts'
import { StartError } from '../start-error.ts'
import { parseRoleMessage, STOP_MS_MAX, type SupervisorMessage } from './messages.ts'
import { createRestartPolicy, restartPhrase } from './restart.ts'
import type { RoleLog } from './role-log.ts'
import type { Terminal } from './terminal.ts'

const PROGRAM = fileURLToPath(new URL('../main.ts', import.meta.url))
/** A process that is not ready after this hangs: it is killed and started again. */
const ROLE_START_MS_MAX = 60_000
/** A process cuts itself off after STOP_MS_MAX; one that cannot even do that is killed. */
const ROLE_STOP_MS_MAX = STOP_MS_MAX + 5_000

export type KeptRole = {
  role: Role
  /** The address of the first process that was ready. Rejects with a StartError when the first one ends before. */
  firstReady: Promise<string | null>
  pid(): number | null
  /** Resolves when its process has ended. A second call waits for the first. */
  stop(how: { end_lobbies: boolean }): Promise<void>
  /** Ends its process now. */
  kill(): void
}

export function keepRole(options: {
  role: Role
  env: NodeJS.ProcessEnv
  log: RoleLog
  terminal: Terminal
  /** Milliseconds of a clock that only runs forward. */
  elapsed: () => number
  /** The role has another process, or none. */
  onProcess: () => void
  /** What is run. Default: the program of the platform. */
  program?: string
}): KeptRole {
  const { role, env, log, terminal, elapsed, onProcess } = options
  const policy = createRestartPolicy()
  const first = Promise.withResolvers<string | null>()
  const ended = Promise.withResolvers<void>()
  // Who does not wait for the first start any more must not make its failure an unhandled one.
  first.promise.catch(() => {})
  let isFirst = true
  let isStopping = false
  let child: ChildProcess | null = null
  let restartTimer: NodeJS.Timeout | null = null

  const start = (): void => {
    restartTimer = null
    const start_ms = elapsed()
    const process = fork(options.program ?? PROGRAM, [role], {
      env: { ...env, MUSTER_ROLES: role },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [...ROLE_FLAGS[role]],
    })
    child = process
    if (process.stdout && process.stderr) log.follow(process.stdout, process.stderr)
    onProcess()
    let reason: string | null = null
    let isReady = false
    const overdue = setTimeout(() => {
      reason = `it was not ready within ${ROLE_START_MS_MAX / 1_000} s`
      process.kill('SIGKILL')
    }, ROLE_START_MS_MAX)
    process.on('message', (value) => {
      const message = parseRoleMessage(value)
      if (message?.kind === 'failed') reason = message.reason
      if (message?.kind !== 'ready') return
      isReady = true
      clearTimeout(overdue)
      if (isFirst) first.resolve(message.address)
      else terminal.say(`${role} is back.`)
      isFirst = false
    })
    // A process that could not even be made: told as an exit is.
    process.once('error', (error) => {
      reason ??= error.message
      if (process.pid === undefined) onEnd('could not be started')
    })
    process.once('exit', (code, signal) => onEnd(signal ? `was ended by ${signal}` : `ended with code ${code}`))

    const onEnd = (how: string): void => {
      if (child !== process) return
      child = null
      clearTimeout(overdue)
      onProcess()
      if (isStopping) {
        ended.resolve()
        return
      }
      if (isFirst && !isReady) {
        // A start that fails is told to the person who waits for it; the whole platform is stopped by whom it is told.
        isStopping = true
        ended.resolve()
        const why = reason ?? `it ${how} before it was ready. ${log.lastWords()}`.trim()
        first.reject(new StartError(`The ${role} role cannot start: ${why}`))
        return
      }
      const restart = policy.died(elapsed() - start_ms)
      const why = reason ? `: ${reason}` : ''
      terminal.warn(role, `${how}${why}; starting it again ${restartPhrase(restart)}`)
      restartTimer = setTimeout(start, restart.delay_ms)
    }
  }
  start()

  return {
    role,
    firstReady: first.promise,
    pid: () => child?.pid ?? null,
    async stop(how) {
      isStopping = true
      if (restartTimer) clearTimeout(restartTimer)
      if (!child) return
      const message: SupervisorMessage = { kind: 'stop', ...how }
      // A closed channel is a wish to stop as well.
      if (child.connected) child.send(message, () => {})
      const overdue = setTimeout(() => {
        terminal.warn(role, `does not stop within ${ROLE_STOP_MS_MAX / 1_000} s; it is killed`)
        child?.kill('SIGKILL')
      }, ROLE_STOP_MS_MAX)
      await ended.promise
      clearTimeout(overdue)
    },
    kill() {
      isStopping = true
      if (restartTimer) clearTimeout(restartTimer)
      child?.kill('SIGKILL')
    },
  }
}
