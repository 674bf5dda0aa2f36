// Measures when a player gets a seat again. Law L11: within 5 s after every part works again.
import { setTimeout as sleep } from 'node:timers/promises'
import { findLobby } from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { outcomeOf } from './history.ts'
import type { FaultyPlatform } from './platform.ts'

export const RECOVERY_MS_MAX = 5_000

/**
 * A held request must not hide that the next one would succeed, so several are under way; each may start a lobby. The pause
 * between two is a part of what is measured.
 */
const PROBE_EVERY_MS = 500
const PROBE_MS_MAX = 20_000
const PROBES_MAX = 360

/** Requests a seat in a new lobby repeatedly. Resolves when one request succeeded. */
export async function firstFind({ game, find_urls }: FaultyPlatform): Promise<void> {
  const clients = find_urls.map((url) => createClient({ url, token: game.public_tokens.probes }))
  const body = { game_modes: ['default'] }
  const reasons = new Map<string, number>()
  let is_found = false
  const found = Promise.withResolvers<void>()
  const probe = async (client: Client): Promise<void> => {
    const outcome = await outcomeOf(client.call(findLobby, { body, signal: AbortSignal.timeout(PROBE_MS_MAX) }))
    if (outcome.status === 'acknowledged') {
      is_found = true
      found.resolve()
    } else count(reasons, outcome.status === 'refused' ? outcome.code : outcome.reason)
  }
  const probes: Promise<void>[] = []
  while (!is_found) {
    if (probes.length === PROBES_MAX) {
      throw new Error(`no find succeeded in ${PROBES_MAX} attempts: ${JSON.stringify([...reasons])}`)
    }
    probes.push(probe(clients[probes.length % clients.length]!).catch(found.reject))
    await Promise.race([sleep(PROBE_EVERY_MS), found.promise])
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
