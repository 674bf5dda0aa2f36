// What this machine uses as a whole, all its programs together: cores as a mean of about a minute, and memory. Linux only.
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** What it uses and has. `cpu_cores`: a fraction. `memory_mb`: MiB that are not available to further programs. */
export type MachineUse = { cpu_cores: number; memory_mb: number; cpu_cores_max: number; memory_mb_max: number }

const SAMPLE_EVERY_MS = 10_000
/** The oldest of these samples is a minute old. */
const SAMPLES_MAX = 7
/** The kernel reports times in hundredths of a second. */
const TICK_MS = 10
const KIB_OF_MIB = 1_024
/** Cores are rounded to hundredths. */
const CORE_PARTS = 100

type Sample = { at_ms: number; busy_ms: number }

export class MachineMeter {
  readonly #elapsed: () => number
  readonly #samples: Sample[] = []
  #newest: MachineUse | null = null

  /** `elapsed`: milliseconds of a clock that never jumps. */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** Cheap: most calls return the newest sample. Null before the second sample, and on other systems. */
  read(): MachineUse | null {
    const at_ms = this.#elapsed()
    const last = this.#samples.at(-1)
    if (last !== undefined && at_ms - last.at_ms < SAMPLE_EVERY_MS) return this.#newest
    const busy_ms = readBusyMs()
    const memory = readMemory()
    if (busy_ms === null || memory === null) return null
    this.#samples.push({ at_ms, busy_ms })
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
    const first = this.#samples[0]!
    if (this.#samples.length > 1) {
      const cpu_cores = Math.round(((busy_ms - first.busy_ms) / (at_ms - first.at_ms)) * CORE_PARTS) / CORE_PARTS
      this.#newest = { cpu_cores, cpu_cores_max: availableParallelism(), ...memory }
    }
    return this.#newest
  }
}

/** Time of all cores since the boot that was spent on work of this machine. Null: not on Linux. */
export function readBusyMs(): number | null {
  const line = readProc('/proc/stat')?.split('\n', 1)[0]
  if (line === undefined) return null
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number)
  return (user + nice + system + irq + softirq) * TICK_MS
}

function readMemory(): Pick<MachineUse, 'memory_mb' | 'memory_mb_max'> | null {
  const text = readProc('/proc/meminfo')
  if (text === null) return null
  const lines = text.split('\n')
  // For example "MemTotal:       24635484 kB".
  const mib = (name: string): number =>
    Math.round(Number(lines.find((line) => line.startsWith(`${name}:`))?.split(/\s+/)[1] ?? 0) / KIB_OF_MIB)
  const memory_mb_max = mib('MemTotal')
  return { memory_mb_max, memory_mb: memory_mb_max - mib('MemAvailable') }
}

function readProc(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null
  }
}
