// What containers use, as the engine reports it: for machines where the platform cannot make control groups.
import type { Handle, Usage } from '../driver.ts'
import { containerName } from './container.ts'
import type { EngineClient } from './engine.ts'

const NS_PER_MS = 1_000_000
/** Requests at once. */
const CONCURRENCY_MAX = 8

type Stats = {
  cpu_stats?: { cpu_usage?: { total_usage?: number } }
  memory_stats?: { usage?: number; stats?: { total_inactive_file?: number; inactive_file?: number } }
}

/** By lobby id, without containers that are gone. */
export async function usageOfContainers(
  engine: EngineClient,
  handles: readonly Handle[],
  containerOf: (lobby_id: string) => string = containerName,
): Promise<Map<string, Usage>> {
  const usage = new Map<string, Usage>()
  const waiting = [...handles]
  async function ask(): Promise<void> {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const path = `/containers/${containerOf(next.lobby_id)}/stats`
      const stats = await engine.find<Stats>(path, { stream: '0', 'one-shot': '1' })
      const used_ns = stats?.cpu_stats?.cpu_usage?.total_usage
      const memory = stats?.memory_stats
      if (used_ns === undefined || memory?.usage === undefined) continue
      const cached = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0
      const memory_bytes = Math.max(0, memory.usage - cached)
      usage.set(next.lobby_id, { cpu_ms: Math.round(used_ns / NS_PER_MS), memory_bytes })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY_MAX }, ask))
  return usage
}
