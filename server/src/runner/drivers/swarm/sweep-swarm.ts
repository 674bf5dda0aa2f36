// Removes what ended lobbies have left in the Swarm: services by a manager, containers and volumes by the engine of each node
// that responds. What is on a node that is away is removed when it is back.

import { existsSync } from 'node:fs'
import { folderOfLobby } from '../../../lobby-logs/local.ts'
import { type ContainerSummary, containerName, factsOf, neverRuns, platformFilter } from '../docker/container.ts'
import { removeById, UNASKED_MS_MAX } from '../docker/end-container.ts'
import { ignoreDone } from '../docker/engine.ts'
import { readEnded } from '../lobby-folder.ts'
import type { EngineNode } from './engine-node.ts'
import type { SwarmHost } from './host.ts'

type StateOf = (lobby_id: string) => 'unknown' | 'starting' | 'running'
type ListedService = { ID: string; CreatedAt: string; Spec: { Labels?: Record<string, string> | null } }

/** Returns the ids of lobbies that still have a container or a service. Throws when a manager or an engine fails. */
export async function sweepSwarm(host: SwarmHost, now_ms: number, stateOf: StateOf): Promise<Set<string>> {
  const kept = new Set<string>()
  for (const node of host.nodes) {
    if (!node.is_here) continue
    await node.check()
    for (const lobby_id of await sweepContainers(host, node, now_ms, stateOf)) kept.add(lobby_id)
    await sweepVolumes(host, node, (lobby_id) => kept.has(lobby_id) || stateOf(lobby_id) !== 'unknown')
  }
  for (const lobby_id of await sweepServices(host, now_ms, (lobby_id) => kept.has(lobby_id), stateOf))
    kept.add(lobby_id)
  return kept
}

export async function removeService({ managers }: Pick<SwarmHost, 'managers'>, lobby_id: string): Promise<void> {
  await managers.call('DELETE', `/services/${containerName(lobby_id)}`).catch(ignoreDone)
}

/**
 * Everything of one lobby on a node that responds. The service is removed last: while its name is taken, a manager that was
 * suspended cannot make it again, and without the volume its container would not start.
 */
export async function removeTask(host: SwarmHost, { engine }: EngineNode, lobby_id: string): Promise<void> {
  const filters = JSON.stringify({ label: [`muster.lobby_id=${lobby_id}`] })
  const listed = await engine.call<ContainerSummary[]>('GET', '/containers/json', { query: { all: '1', filters } })
  for (const { Id } of listed) await removeById(engine, Id)
  await removeVolume(engine, containerName(lobby_id))
  await removeService(host, lobby_id)
}

async function sweepContainers(
  host: SwarmHost,
  node: EngineNode,
  now_ms: number,
  stateOf: StateOf,
): Promise<Set<string>> {
  const kept = new Set<string>()
  for (const summary of node.containers()) {
    const facts = factsOf(summary.Labels)
    if (facts === null) continue
    const { lobby_id } = facts
    const state = stateOf(lobby_id)
    if (neverRuns(summary.Labels)) {
      if (state !== 'starting') await removeById(node.engine, summary.Id)
    } else if (state !== 'unknown' || !isOver(host, lobby_id, summary, now_ms)) kept.add(lobby_id)
    else await removeTask(host, node, lobby_id)
  }
  return kept
}

/** Its exit is recorded, or nothing is known of it any more, or it has ended and no caller asked for its end. */
function isOver(
  { lobbies_folder }: SwarmHost,
  lobby_id: string,
  { State, Created }: ContainerSummary,
  now_ms: number,
): boolean {
  const folder = folderOfLobby(lobbies_folder, lobby_id)
  // The logs of a lobby may be removed before its node comes back.
  if (!existsSync(folder) || readEnded(folder) !== null) return true
  const is_running = State === 'running' || State === 'paused' || State === 'restarting'
  return !is_running && Created * 1_000 < now_ms - UNASKED_MS_MAX
}

async function sweepVolumes(
  { platform }: SwarmHost,
  { engine }: EngineNode,
  isKept: (lobby_id: string) => boolean,
): Promise<void> {
  type Listed = { Volumes: { Name: string; Labels: Record<string, string> | null }[] | null }
  const { Volumes } = await engine.call<Listed>('GET', '/volumes', { query: platformFilter(platform) })
  for (const { Name, Labels } of Volumes ?? []) {
    const facts = factsOf(Labels ?? {})
    if (facts !== null && !isKept(facts.lobby_id)) await removeVolume(engine, Name)
  }
}

/** Refused while a container has it. */
async function removeVolume(engine: EngineNode['engine'], name: string): Promise<void> {
  await engine.call('DELETE', `/volumes/${name}`, { query: { force: '1' } }).catch(ignoreDone)
}

/** A service without a container belongs to a start under way, or to a start that a killed runner has begun. */
async function sweepServices(
  host: SwarmHost,
  now_ms: number,
  hasContainer: (lobby_id: string) => boolean,
  stateOf: StateOf,
): Promise<Set<string>> {
  const kept = new Set<string>()
  const query = platformFilter(host.platform)
  for (const { CreatedAt, Spec } of await host.managers.call<ListedService[]>('GET', '/services', { query })) {
    const lobby_id = factsOf(Spec.Labels ?? {})?.lobby_id
    if (lobby_id === undefined) continue
    const is_ended = readEnded(folderOfLobby(host.lobbies_folder, lobby_id)) !== null
    const is_old = Date.parse(CreatedAt) < now_ms - UNASKED_MS_MAX
    if (stateOf(lobby_id) !== 'unknown' || hasContainer(lobby_id) || (!is_ended && !is_old)) kept.add(lobby_id)
    else await removeService(host, lobby_id)
  }
  return kept
}
