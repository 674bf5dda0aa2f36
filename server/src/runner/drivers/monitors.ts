// Monitors that wait for a lobby, each in a control group of its own. A start takes one that is ready, and then another
// is started in its place, a moment later, when the lobby has had the machine to itself.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Cgroups } from './cgroups.ts'
import { type Monitor, startMonitor } from './monitor.ts'

const SPARE_MAX = 4
const REFILL_DELAY_MS = 250
const END_MS_MAX = 1_000

/** `group` is the name of its control group; null where there are none. */
type GroupedMonitor = Monitor & { group: string | null }

export type Monitors = {
  /** One that lives; at worst it has just been started. */
  take(): GroupedMonitor
  /** Whether a control group is that of a monitor without a lobby. */
  isSpare(group: string): boolean
  /** Ends those without a lobby. */
  close(): Promise<void>
}

export function openMonitors(cgroups: Cgroups | null, inherited: readonly number[]): Monitors {
  const spare: GroupedMonitor[] = []
  let refilling: NodeJS.Timeout | null = null
  let is_closed = false

  function start(): GroupedMonitor {
    const group = cgroups === null ? null : randomUUID()
    const files = group === null ? [] : (cgroups?.create(group) ?? [])
    return { ...startMonitor(files, inherited), group }
  }

  function refill(): void {
    refilling = null
    if (is_closed) return
    while (spare.length < SPARE_MAX) spare.push(start())
  }

  function refillLater(): void {
    refilling ??= setTimeout(refill, REFILL_DELAY_MS).unref()
  }

  function isLiving({ child }: Monitor): boolean {
    return child.pid !== undefined && child.exitCode === null && child.signalCode === null
  }

  refill()
  return {
    take() {
      if (is_closed) throw new Error('The driver is closed.')
      refillLater()
      for (let monitor = spare.shift(); monitor !== undefined; monitor = spare.shift()) {
        if (isLiving(monitor)) return monitor
        if (monitor.group !== null) cgroups?.remove(monitor.group)
      }
      return start()
    },

    isSpare: (group) => spare.some((monitor) => monitor.group === group),

    async close() {
      is_closed = true
      if (refilling !== null) clearTimeout(refilling)
      await Promise.all(spare.splice(0).map(endSpare))
    },
  }

  async function endSpare(monitor: GroupedMonitor): Promise<void> {
    const { child, control, group } = monitor
    child.ref()
    control.end()
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
    if (isLiving(monitor)) await once(child, 'exit')
    clearTimeout(late)
    control.destroy()
    if (group !== null) cgroups?.remove(group)
  }
}
