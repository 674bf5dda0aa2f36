// One role as a process of its own that is restarted when it dies. States: starting -> ready -> died -> (a delay) ->
// starting..., and stopping -> stopped after a request to stop. The process leads its own session, so that Ctrl-C on the
// terminal reaches only the supervisor, which stops the parts in their order.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ROLE_FLAGS, type Role } from '../config/roles.ts'
import { StartError } from '../start-error.ts'
import { parseRoleMessage, STOP_MS_MAX, type SupervisorMessage } from './messages.ts'
import { createRestartPolicy, restartPhrase } from './restart.ts'
import type { RoleLog } from './role-log.ts'
import type { Terminal } from './terminal.ts'

const PROGRAM = fileURLToPath(new URL('../main.ts', import.meta.url))
/** Time in which a process must be ready. After it the process is taken to hang, killed, and started again. */
const ROLE_START_MS_MAX = 60_000
/** Time in which a process must end. It exits on its own after STOP_MS_MAX; one that does not even do that is killed. */
const ROLE_STOP_MS_MAX = STOP_MS_MAX + 5_000

type Options = {
  role: Role
  env: NodeJS.ProcessEnv
  log: RoleLog
  terminal: Terminal
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number
  /** Called when the role has another process, or none. */
  onProcess: () => void
  /** The program to run. Default: the program of the platform. */
  program?: string
}

/** One process of the role. `reason`: why it ends, when that is known before its exit. */
type RoleProcess = {
  child: ChildProcess
  start_ms: number
  is_ready: boolean
  reason: string | null
  overdue: NodeJS.Timeout
}

/** Starts the role, and restarts it until `stop`. */
export function superviseRole(options: Options): SupervisedRole {
  return new SupervisedRole(options)
}

export class SupervisedRole {
  readonly role: Role
  /** The address of the first process that was ready. Rejects with a StartError when the first process ends before. */
  readonly first_ready: Promise<string | null>
  readonly #options: Options
  readonly #policy = createRestartPolicy()
  readonly #first = Promise.withResolvers<string | null>()
  readonly #ended = Promise.withResolvers<void>()
  #is_first = true
  #is_stopping = false
  #process: RoleProcess | null = null
  #restart_timer: NodeJS.Timeout | null = null

  constructor(options: Options) {
    this.role = options.role
    this.#options = options
    this.first_ready = this.#first.promise
    // A caller that stopped waiting must not turn the failure of the first start into an unhandled rejection.
    this.first_ready.catch(() => {})
    this.#start()
  }

  pid(): number | null {
    return this.#process?.child.pid ?? null
  }

  /** Resolves when its process has ended. A second call waits for the first. */
  async stop(how: { end_lobbies: boolean }): Promise<void> {
    this.#cancelRestart()
    const child = this.#process?.child
    if (!child) return
    const message: SupervisorMessage = { kind: 'stop', ...how }
    // A closed channel is a request to stop as well.
    if (child.connected) child.send(message, () => {})
    const overdue = setTimeout(() => {
      this.#options.terminal.warn(this.role, `does not stop within ${ROLE_STOP_MS_MAX / 1_000} s; it is killed`)
      this.#process?.child.kill('SIGKILL')
    }, ROLE_STOP_MS_MAX)
    await this.#ended.promise
    clearTimeout(overdue)
  }

  /** Ends its process now. */
  kill(): void {
    this.#cancelRestart()
    this.#process?.child.kill('SIGKILL')
  }

  #cancelRestart(): void {
    this.#is_stopping = true
    if (this.#restart_timer) clearTimeout(this.#restart_timer)
  }

  #start(): void {
    const { role, env, log, onProcess, elapsed, program = PROGRAM } = this.#options
    this.#restart_timer = null
    const start_ms = elapsed()
    const child = fork(program, [role], {
      env: { ...env, MUSTER_ROLES: role },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [...ROLE_FLAGS[role]],
    })
    const overdue = setTimeout(() => {
      started.reason = `it was not ready within ${ROLE_START_MS_MAX / 1_000} s`
      child.kill('SIGKILL')
    }, ROLE_START_MS_MAX)
    const started: RoleProcess = { child, start_ms, is_ready: false, reason: null, overdue }
    this.#process = started
    if (child.stdout && child.stderr) log.follow(child.stdout, child.stderr)
    onProcess()
    child.on('message', (value) => this.#onMessage(started, value))
    // A process that could not be created has no exit event.
    child.once('error', (error) => {
      started.reason ??= error.message
      if (child.pid === undefined) this.#onEnd(started, 'could not be started')
    })
    child.once('exit', (code, signal) => {
      this.#onEnd(started, signal ? `was ended by ${signal}` : `ended with code ${code}`)
    })
  }

  #onMessage(process: RoleProcess, value: unknown): void {
    const message = parseRoleMessage(value)
    if (message?.kind === 'failed') process.reason = message.reason
    if (message?.kind !== 'ready') return
    process.is_ready = true
    clearTimeout(process.overdue)
    if (this.#is_first) this.#first.resolve(message.address)
    else this.#options.terminal.say(`${this.role} is back.`)
    this.#is_first = false
  }

  #onEnd(process: RoleProcess, how: string): void {
    if (this.#process !== process) return
    const { log, terminal, elapsed, onProcess } = this.#options
    this.#process = null
    clearTimeout(process.overdue)
    onProcess()
    if (this.#is_stopping) {
      this.#ended.resolve()
      return
    }
    if (this.#is_first && !process.is_ready) {
      // A failed first start is reported to the caller, which then stops the whole platform.
      this.#is_stopping = true
      this.#ended.resolve()
      const reason = process.reason ?? `it ${how} before it was ready. ${log.lastLines()}`.trim()
      this.#first.reject(new StartError(`The ${this.role} role cannot start: ${reason}`))
      return
    }
    const restart = this.#policy.died(elapsed() - process.start_ms)
    const reason = process.reason ? `: ${process.reason}` : ''
    terminal.warn(this.role, `${how}${reason}; starting it again ${restartPhrase(restart)}`)
    this.#restart_timer = setTimeout(() => this.#start(), restart.delay_ms)
  }
}
