// Monitors without a lobby, each in a control group of its own. A start takes a ready one. Its replacement is started a
// moment later, so that it does not compete with the lobby for the processor.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Cgroups } from '../cgroups.ts'
import { type Monitor, startMonitor } from './monitor.ts'

/** Processes kept ready. As many lobbies start at once without waiting for a monitor. */
const SPARE_MAX = 4
const REFILL_DELAY_MS = 250
/** How long `close` waits for a spare monitor to end before it is killed. */
const END_MS_MAX = 1_000

/** `group`: the name of its control group; null where there are none. */
type GroupedMonitor = Monitor & { group: string | null }

export class SpareMonitors {
  readonly #cgroups: Cgroups | null
  readonly #inherited: readonly number[]
  readonly #spare: GroupedMonitor[] = []
  #refilling: NodeJS.Timeout | null = null
  #is_closed = false

  constructor(cgroups: Cgroups | null, inherited: readonly number[]) {
    this.#cgroups = cgroups
    this.#inherited = inherited
    this.#refill()
  }

  /** A living monitor. Where none is ready, one is started now. */
  take(): GroupedMonitor {
    if (this.#is_closed) throw new Error('The driver is closed.')
    this.#refilling ??= setTimeout(() => this.#refill(), REFILL_DELAY_MS).unref()
    for (let monitor = this.#spare.shift(); monitor !== undefined; monitor = this.#spare.shift()) {
      if (isLiving(monitor)) return monitor
      this.#removeGroup(monitor.group)
    }
    return this.#start()
  }

  /** Whether a control group belongs to a monitor without a lobby. */
  isSpare(group: string): boolean {
    return this.#spare.some((monitor) => monitor.group === group)
  }

  /** Ends the monitors without a lobby. */
  async close(): Promise<void> {
    this.#is_closed = true
    if (this.#refilling !== null) clearTimeout(this.#refilling)
    await Promise.all(this.#spare.splice(0).map((monitor) => this.#end(monitor)))
  }

  #start(): GroupedMonitor {
    const group = this.#cgroups === null ? null : randomUUID()
    const files = group === null ? [] : (this.#cgroups?.create(group) ?? [])
    return { ...startMonitor(files, this.#inherited), group }
  }

  #refill(): void {
    this.#refilling = null
    if (this.#is_closed) return
    while (this.#spare.length < SPARE_MAX) this.#spare.push(this.#start())
  }

  async #end(monitor: GroupedMonitor): Promise<void> {
    const { child, control, group } = monitor
    child.ref()
    control.end()
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
    if (isLiving(monitor)) await once(child, 'exit')
    clearTimeout(late)
    control.destroy()
    this.#removeGroup(group)
  }

  #removeGroup(group: string | null): void {
    if (group !== null) this.#cgroups?.remove(group)
  }
}

function isLiving({ child }: Monitor): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}
