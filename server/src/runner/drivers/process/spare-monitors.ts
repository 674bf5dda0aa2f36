// Monitors without a lobby, each in a control group of its own and with a disk of the size that was taken last: most lobbies
// of a machine have the same tier. A start takes a ready one. Its replacement is started a moment later, so that it does
// not compete with the lobby for the processor. As many are kept as have been taken at once. Before the first start there
// is none.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Cgroups } from '../cgroups.ts'
import { type Disks, type NewDisk, removeFile } from './lobby-disk.ts'
import { type Monitor, startMonitor } from './monitor.ts'

/** Processes kept ready. As many lobbies start at once without waiting for a monitor. */
const SPARE_MAX = 4
const REFILL_DELAY_MS = 250
/** How long `close` waits for a spare monitor to end before it is killed. */
const END_MS_MAX = 1_000

/** `group`: the name of its control group; null where there are none. `bytes`: the size of its disk. */
type GroupedMonitor = Monitor & { group: string | null; bytes: number | null; disk: NewDisk | null }

export class SpareMonitors {
  readonly #cgroups: Cgroups | null
  readonly #disks: Disks | null
  readonly #inherited: readonly number[]
  readonly #ready: GroupedMonitor[] = []
  readonly #making = new Set<GroupedMonitor>()
  /** What `close` waits for. */
  readonly #work = new Set<Promise<void>>()
  #bytes: number | null = null
  /** Monitors of this size that are kept ready. */
  #wanted = 0
  /** Taken since the last refill, and how many of these were not ready. */
  #taken = 0
  #missed = 0
  #refilling: NodeJS.Timeout | null = null
  #is_closed = false

  constructor(cgroups: Cgroups | null, disks: Disks | null, inherited: readonly number[]) {
    this.#cgroups = cgroups
    this.#disks = disks
    this.#inherited = inherited
  }

  /**
   * Returns a monitor that waits for its lobby. Where none is ready, one is started now. `bytes`: the size of its disk. The name
   * of its group is in `facts` from the moment at which it belongs to the caller, also when it cannot be started.
   */
  async take(bytes: number | null, facts: { group: string | null }): Promise<Monitor> {
    if (this.#is_closed) throw new Error('The driver is closed.')
    if (bytes !== this.#bytes) this.#empty(bytes)
    this.#taken++
    this.#refilling ??= setTimeout(() => this.#refill(), REFILL_DELAY_MS).unref()
    for (let monitor = this.#ready.shift(); monitor !== undefined; monitor = this.#ready.shift()) {
      facts.group = monitor.group
      if (isLiving(monitor)) return monitor
      this.#removeGroup(monitor.group)
    }
    this.#missed++
    const monitor = this.#start(bytes)
    facts.group = monitor.group
    await this.#made(monitor)
    return monitor
  }

  /** Whether a control group belongs to a monitor without a lobby. */
  isSpare(group: string): boolean {
    return [...this.#ready, ...this.#making].some((monitor) => monitor.group === group)
  }

  /** Ends the monitors without a lobby. */
  async close(): Promise<void> {
    this.#is_closed = true
    if (this.#refilling !== null) clearTimeout(this.#refilling)
    this.#empty(null)
    for (const monitor of this.#making) monitor.control.end()
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  #start(bytes: number | null): GroupedMonitor {
    const group = this.#cgroups === null ? null : randomUUID()
    const files = group === null ? [] : (this.#cgroups?.create(group) ?? [])
    const disk = bytes === null ? null : (this.#disks?.create(bytes) ?? null)
    return { ...startMonitor(files, this.#inherited, disk), group, bytes, disk }
  }

  /** From then on the file of its disk has no name. */
  async #made({ ready, disk }: GroupedMonitor): Promise<void> {
    try {
      await ready
    } finally {
      if (disk !== null) removeFile(disk)
    }
  }

  #empty(bytes: number | null): void {
    this.#bytes = bytes
    this.#wanted = 0
    for (const monitor of this.#ready.splice(0)) this.#track(this.#end(monitor))
  }

  #refill(): void {
    this.#refilling = null
    this.#wanted = Math.min(SPARE_MAX, Math.max(this.#wanted + this.#missed, this.#taken))
    this.#taken = 0
    this.#missed = 0
    const missing = this.#wanted - this.#ready.length - this.#making.size
    for (let count = 0; count < missing; count++) this.#track(this.#addSpare())
  }

  /** A failure, such as a full disk, leaves fewer: a start then makes its own, and reports why it cannot. */
  async #addSpare(): Promise<void> {
    let monitor: GroupedMonitor | null = null
    try {
      monitor = this.#start(this.#bytes)
      this.#making.add(monitor)
      await this.#made(monitor)
      if (!this.#is_closed && monitor.bytes === this.#bytes) this.#ready.push(monitor)
      else this.#track(this.#end(monitor))
    } catch {
      this.#removeGroup(monitor?.group ?? null)
    } finally {
      if (monitor !== null) this.#making.delete(monitor)
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
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
