// What running lobbies of a Swarm have used, as sampled last. The engine counts processor time in the control group of a
// container, and that is gone when the engine reports the end. So each running lobby is sampled about once a second, also
// at its start and before a stop, and the exit has the last sample: what a server used after it is missing.
import type { EngineClient } from '../docker/engine.ts'
import { usageOfContainer } from '../docker/usage.ts'

/** Samples of one check of a node, which runs every second. With more lobbies each is sampled less often. */
const SAMPLES_MAX = 4

/** `has_reached_pids`: it had as many processes as its tier allows. */
export type UsageSample = { cpu_ms: number; has_reached_pids: boolean }

export class UsageSamples {
  /** By lobby id. The one that was sampled longest ago is the first. */
  readonly #samples = new Map<string, UsageSample>()
  readonly #sampling = new Set<EngineClient>()

  of(lobby_id: string): UsageSample | null {
    return this.#samples.get(lobby_id) ?? null
  }

  forget(lobby_id: string): void {
    this.#samples.delete(lobby_id)
  }

  keep(lobby_id: string, { cpu_ms, has_reached_pids }: UsageSample): void {
    const before = this.#samples.get(lobby_id)
    this.#samples.delete(lobby_id)
    this.#samples.set(lobby_id, {
      cpu_ms: Math.max(cpu_ms, before?.cpu_ms ?? 0),
      has_reached_pids: has_reached_pids || before?.has_reached_pids === true,
    })
  }

  async sample(engine: EngineClient, lobby_id: string, container: string): Promise<void> {
    const usage = await usageOfContainer(engine, container)
    if (usage !== null) this.keep(lobby_id, usage)
  }

  /** Some lobbies of one node, by their containers. Never throws: the next check repeats it. */
  async sampleSome(engine: EngineClient, containers: ReadonlyMap<string, string>): Promise<void> {
    if (this.#sampling.has(engine)) return
    this.#sampling.add(engine)
    try {
      const order = [...this.#samples.keys()]
      const due = [...containers.keys()].sort((one, other) => order.indexOf(one) - order.indexOf(other))
      for (const lobby_id of due.slice(0, SAMPLES_MAX)) await this.sample(engine, lobby_id, containers.get(lobby_id)!)
    } catch {
      // The node goes away.
    } finally {
      this.#sampling.delete(engine)
    }
  }
}
