// One role as a process of its own that is restarted when it dies. States: starting -> ready -> died -> (a delay) ->
// starting..., and stopping -> stopped after a request to stop. The process leads its own session, so that Ctrl-C on the
// terminal reaches only the supervisor, which stops the parts in their order.
//
// A planned restart starts the program as it is on disk now. The edge starts beside its former process, which hands everything
// over and ends when it has nothing left; all other roles stop first. A supervisor that has replaced its own program does the
// same with the processes that it finds (inherited-processes.ts).
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { instanceName, type ProcessNumber } from '../config/processes.ts'
import { ROLE_FLAGS, type Role } from '../config/roles.ts'
import { StartError } from '../config/start-error.ts'
import type { InheritedProcesses } from './inherited-processes.ts'
import { parseRoleMessage, STOP_MS_MAX, type SupervisorMessage } from './messages.ts'
import { createRestartPolicy, restartPhrase } from './restart.ts'
import type { RoleLog } from './role-log.ts'
import type { SupervisorTerminal } from './terminal.ts'

/** Time in which a process must be ready. After it the process is taken to hang, killed, and started again. */
const ROLE_START_MS_MAX = 60_000
/** Time in which a process must end. It exits on its own after STOP_MS_MAX; one that does not even do that is killed. */
const ROLE_STOP_MS_MAX = STOP_MS_MAX + 5_000

type Options = {
  role: Role
  /** Which process of the role it is. Default: the only one. */
  number?: ProcessNumber
  env: NodeJS.ProcessEnv
  log: RoleLog
  terminal: SupervisorTerminal
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number
  /** Called when the role has another process, or none. */
  onProcess: () => void
  /** The program to run. Default: the program of the platform. */
  program?: RoleProgram
  /** Processes of the role that run on from before the supervisor replaced its program. */
  inherited?: InheritedProcesses | null
  /** The edge among them hands nothing over: it stops first, as the other roles do. */
  is_plain?: boolean
  /** A process that does not take over from them fails the start, and they run on for the program before. */
  has_way_back?: boolean
}

/** `exec_path`: of Node. */
export type RoleProgram = { exec_path: string; path: string }

const OWN_PROGRAM: RoleProgram = {
  exec_path: process.execPath,
  path: fileURLToPath(new URL('../main.ts', import.meta.url)),
}

/** Time in which a process must be ready to run on without this supervisor. */
const STAY_MS_MAX = 5_000

/** Roles that start beside their former process in a planned restart. */
const HANDS_OVER: ReadonlySet<Role> = new Set(['edge'])

/** One process of the role. `reason`: why it ends, when that is known before its exit. */
type RoleProcess = {
  child: ChildProcess
  start_ms: number
  is_ready: boolean
  /** Resolves when it is ready, and rejects when it ends before. */
  readiness: PromiseWithResolvers<void>
  /** The process that continues when this one is never ready. */
  replaces: RoleProcess | null
  reason: string | null
  overdue: NodeJS.Timeout
}

/** Starts the role, and restarts it until `stop`. */
export function superviseRole(options: Options): SupervisedRole {
  return new SupervisedRole(options)
}

export class SupervisedRole {
  readonly role: Role
  /** The role, with its number from the second process on. */
  readonly name: string
  /** The address of the first process that was ready. Rejects with a StartError when the first process ends before. */
  readonly first_ready: Promise<string | null>
  readonly #options: Options
  readonly #policy = createRestartPolicy()
  readonly #first = Promise.withResolvers<string | null>()
  readonly #ended = Promise.withResolvers<void>()
  #is_first = true
  #is_stopping = false
  #is_restarting = false
  #process: RoleProcess | null = null
  /** Processes that have been replaced, until they end. */
  readonly #retiring = new Set<RoleProcess>()
  #restart_timer: NodeJS.Timeout | null = null
  #program: RoleProgram
  /** Null once they are only waited for. */
  #inherited: InheritedProcesses | null

  constructor(options: Options) {
    this.role = options.role
    this.name = instanceName(options.role, options.number?.number ?? 0)
    this.#options = options
    this.#program = options.program ?? OWN_PROGRAM
    this.#inherited = options.inherited ?? null
    this.first_ready = this.#first.promise
    // A caller that stopped waiting must not turn the failure of the first start into an unhandled rejection.
    this.first_ready.catch(() => {})
    const hands_over = HANDS_OVER.has(this.role) && !options.is_plain
    if (this.#inherited === null || hands_over) this.#start()
    else void this.#startAfterInherited(this.#inherited)
  }

  /** `retiring`: processes that have been replaced, until they end. */
  pids(): { current: number | null; retiring: number[] } {
    return {
      current: this.#process?.child.pid ?? null,
      retiring: [
        ...[...this.#retiring].flatMap(({ child }) => child.pid ?? []),
        ...(this.#options.inherited?.pids() ?? []),
      ],
    }
  }

  /** Resolves when its processes have ended. A second call waits for the first. */
  async stop(how: { end_lobbies: boolean }): Promise<void> {
    this.#cancelRestart()
    await this.#options.inherited?.stop(ROLE_STOP_MS_MAX)
    if (this.#processes().length === 0) return
    const killLate = this.#requestStop(this.#processes(), how)
    await this.#ended.promise
    clearTimeout(killLate)
  }

  /** Ends its processes now. */
  kill(): void {
    this.#cancelRestart()
    this.#options.inherited?.kill()
    for (const { child } of this.#processes()) child.kill('SIGKILL')
  }

  /** Resolves when its processes run on without this supervisor, and write their log to the file. */
  async stay(log_path: string): Promise<void> {
    await Promise.all(
      this.#processes().map(async ({ child }) => {
        const staying = Promise.withResolvers<void>()
        child.on('message', (value) => parseRoleMessage(value)?.kind === 'staying' && staying.resolve())
        child.send({ kind: 'stay', log_path } satisfies SupervisorMessage, () => {})
        const late = setTimeout(() => staying.reject(new Error(`The ${this.name} role does not respond.`)), STAY_MS_MAX)
        await staying.promise.finally(() => clearTimeout(late))
      }),
    )
  }

  /**
   * A planned restart. Resolves with the program that ran before when the next process is ready. Rejects with a StartError when
   * it ends before. `program`: from now on; if it does not start, the one before runs again. `is_plain`: an edge hands nothing
   * over.
   */
  async restart(program: RoleProgram | null = null, { is_plain = false } = {}): Promise<RoleProgram> {
    const former = this.#process
    const before = this.#program
    if (this.#is_stopping || this.#is_restarting || former === null || !former.is_ready) {
      if (program === null) return before
      throw new StartError(`The ${this.name} role is not ready now. Try again when it is.`)
    }
    this.#program = program ?? before
    this.#is_restarting = true
    try {
      if (!HANDS_OVER.has(this.role) || is_plain) await this.#restartPlainly(former)
      else await this.#replace(former, { breaks: program === null })
      return before
    } catch (error) {
      this.#program = before
      if (program !== null) await this.#startAgain()
      throw error
    } finally {
      this.#is_restarting = false
    }
  }

  /**
   * Starts a process beside the former one, which continues when the next one is never ready. `breaks`: then the former one is
   * restarted plainly.
   */
  async #replace(former: RoleProcess, { breaks }: { breaks: boolean }): Promise<void> {
    this.#retiring.add(former)
    const next = this.#start(former)
    try {
      await next.readiness.promise
    } catch (error) {
      if (!breaks) throw error
      const reason = next.reason === null ? '' : `: ${next.reason}`
      this.#options.terminal.warn(this.name, `cannot hand over${reason}; its connections break`)
      await this.#restartPlainly(former)
    }
  }

  /** After a program that did not start. Resolves when a process of the role is ready. */
  async #startAgain(): Promise<void> {
    if (this.#is_stopping || this.#process?.is_ready) return
    if (this.#restart_timer) clearTimeout(this.#restart_timer)
    await this.#start().readiness.promise
  }

  /** The processes that were inherited stop first: two of this role would need the same ports. */
  async #startAfterInherited(inherited: InheritedProcesses): Promise<void> {
    this.#inherited = null
    await inherited.stop(ROLE_STOP_MS_MAX)
    if (this.#is_stopping) this.#first.reject(new StartError(`The ${this.name} role was stopped.`))
    else this.#start()
  }

  async #restartPlainly(former: RoleProcess): Promise<void> {
    if (this.#is_stopping || this.#process !== former) return
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    former.child.once('exit', () => resolve())
    const killLate = this.#requestStop([former], { end_lobbies: false })
    await ended
    clearTimeout(killLate)
    if (!this.#is_stopping) await this.#start().readiness.promise
  }

  #requestStop(processes: readonly RoleProcess[], how: { end_lobbies: boolean }): NodeJS.Timeout {
    const message: SupervisorMessage = { kind: 'stop', ...how }
    // A closed channel is a request to stop as well.
    for (const { child } of processes) if (child.connected) child.send(message, () => {})
    return setTimeout(() => {
      this.#options.terminal.warn(this.name, `does not stop within ${ROLE_STOP_MS_MAX / 1_000} s; it is killed`)
      for (const { child } of processes) child.kill('SIGKILL')
    }, ROLE_STOP_MS_MAX)
  }

  #processes(): RoleProcess[] {
    return this.#process === null ? [...this.#retiring] : [this.#process, ...this.#retiring]
  }

  #cancelRestart(): void {
    this.#is_stopping = true
    if (this.#restart_timer) clearTimeout(this.#restart_timer)
  }

  #start(replaces: RoleProcess | null = null): RoleProcess {
    const { role, number, env, log, onProcess, elapsed } = this.#options
    const { path, exec_path } = this.#program
    this.#restart_timer = null
    const start_ms = elapsed()
    const numbered = number !== undefined && number.count > 1
    const child = fork(path, [role, ...(this.name === role ? [] : [this.name])], {
      execPath: exec_path,
      env: { ...env, MUSTER_ROLES: role, ...(numbered && { MUSTER_PROCESS: `${number.number}/${number.count}` }) },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [...ROLE_FLAGS[role]],
    })
    const overdue = setTimeout(() => {
      started.reason = `it was not ready within ${ROLE_START_MS_MAX / 1_000} s`
      child.kill('SIGKILL')
    }, ROLE_START_MS_MAX)
    const readiness = Promise.withResolvers<void>()
    // Only a planned restart waits for it.
    readiness.promise.catch(() => {})
    const started: RoleProcess = { child, start_ms, is_ready: false, readiness, replaces, reason: null, overdue }
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
      const end = (): void => this.#onEnd(started, signal ? `was ended by ${signal}` : `ended with code ${code}`)
      // Its last message, such as why it cannot start, may arrive after its exit. The channel closes after the last one.
      if (child.connected) child.once('disconnect', end)
      else end()
    })
    return started
  }

  #onMessage(process: RoleProcess, value: unknown): void {
    const message = parseRoleMessage(value)
    if (message?.kind === 'failed') process.reason = message.reason
    if (message?.kind !== 'ready') return
    process.is_ready = true
    this.#inherited = null
    process.readiness.resolve()
    clearTimeout(process.overdue)
    if (this.#is_first) this.#first.resolve(message.address)
    else this.#options.terminal.say(`${this.name} is back.`)
    this.#is_first = false
  }

  #onEnd(process: RoleProcess, how: string): void {
    const was_retiring = this.#retiring.delete(process)
    if (this.#process !== process && !was_retiring) return
    const { log, terminal, elapsed, onProcess } = this.#options
    clearTimeout(process.overdue)
    const why =
      process.reason === null ? `It ${how} before it was ready. ${this.#options.log.lastLines()}` : process.reason
    process.readiness.reject(new StartError(`The ${this.name} role cannot start: ${why}`.trim()))
    if (!was_retiring) {
      const replaces = process.replaces
      const continues = !process.is_ready && replaces !== null && this.#retiring.delete(replaces)
      this.#process = continues ? replaces : null
    }
    onProcess()
    if (this.#is_stopping) {
      if (this.#processes().length === 0) this.#ended.resolve()
      return
    }
    if (this.#process !== null || (this.#is_restarting && process.is_ready)) return
    if (this.#is_first && !process.is_ready && this.#inherited !== null && !this.#options.has_way_back) {
      const reason = process.reason === null ? '' : `: ${process.reason}`
      terminal.warn(this.name, `cannot take over from the version before${reason}; its connections break`)
      void this.#startAfterInherited(this.#inherited)
      return
    }
    if (this.#is_first && !process.is_ready) {
      // A failed first start is reported to the caller, which then stops the whole platform.
      this.#is_stopping = true
      this.#ended.resolve()
      const reason = process.reason ?? `it ${how} before it was ready. ${log.lastLines()}`.trim()
      this.#first.reject(new StartError(`The ${this.name} role cannot start: ${reason}`))
      return
    }
    const restart = this.#policy.died(elapsed() - process.start_ms)
    const reason = process.reason ? `: ${process.reason}` : ''
    terminal.warn(this.name, `${how}${reason}; starting it again ${restartPhrase(restart)}`)
    this.#restart_timer = setTimeout(() => this.#start(), restart.delay_ms)
  }
}
