// What containers use, as the engine reports it: for machines where the platform cannot make control groups.
import type { Handle, Usage } from '../driver.ts'
import { containerName } from './container.ts'
import type { EngineClient } from './engine.ts'

const NS_PER_MS = 1_000_000
/** Requests at once. */
const CONCURRENCY_MAX = 8

/** `has_reached_pids`: it has as many processes as it may have. */
export type ContainerUsage = Usage & { has_reached_pids: boolean }

type Stats = {
  pids_stats?: { current?: number; limit?: number }
  cpu_stats?: { cpu_usage?: { total_usage?: number } }
  memory_stats?: { usage?: number; stats?: { total_inactive_file?: number; inactive_file?: number } }
}

/** By lobby id, without containers that are gone. */
export async function usageOfContainers(
  engine: EngineClient,
  handles: readonly Handle[],
  containerOf: (lobby_id: string) => string = containerName,
): Promise<Map<string, ContainerUsage>> {
  const usage = new Map<string, ContainerUsage>()
  const waiting = [...handles]
  async function ask(): Promise<void> {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const used = await usageOfContainer(engine, containerOf(next.lobby_id))
      if (used !== null) usage.set(next.lobby_id, used)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY_MAX }, ask))
  return usage
}

/** Null: it does not run. */
export async function usageOfContainer(engine: EngineClient, container: string): Promise<ContainerUsage | null> {
  const stats = await engine.find<Stats>(`/containers/${container}/stats`, { stream: '0', 'one-shot': '1' })
  const used_ns = stats?.cpu_stats?.cpu_usage?.total_usage
  const memory = stats?.memory_stats
  if (used_ns === undefined || memory?.usage === undefined) return null
  const cached = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0
  const { current = 0, limit = 0 } = stats?.pids_stats ?? {}
  return {
    cpu_ms: Math.round(used_ns / NS_PER_MS),
    memory_bytes: Math.max(0, memory.usage - cached),
    has_reached_pids: limit > 0 && current >= limit,
  }
}
