// Ends containers, and removes them with their volumes and control groups.
import { setTimeout as sleep } from 'node:timers/promises'
import { folderOfLobby } from '../../../lobby-logs/local.ts'
import type { EndedLogs } from '../../logs/ended-logs.ts'
import type { Handle } from '../driver.ts'
import type { Ending } from '../endings.ts'
import { changeTime, readEnded } from '../lobby-folder.ts'
import type { LobbyFolders } from '../lobby-folders.ts'
import {
  type ContainerFacts,
  type ContainerInspect,
  type ContainerSummary,
  containerName,
  factsOf,
  neverRuns,
  platformFilter,
} from './container.ts'
import { type EngineClient, EngineError, ignoreDone } from './engine.ts'
import type { DockerHost } from './host.ts'
import { markOutputWhole } from './output.ts'

const POLL_MS_MIN = 10
/** Longest pause between two checks of whether a container has ended. */
const POLL_MS_MAX = 200
const POLL_GROWTH = 1.5
/** How long a container may remain after its SIGKILL: a process may hang in the kernel. */
const KILL_WAIT_MS_MAX = 30_000
/** After this time a container without a recorded end is removed: no caller asked for its end. */
export const UNASKED_MS_MAX = 60 * 60_000

/**
 * The stop signal, and at `ending.deadline_ms` (performance.now) SIGKILL. `isSeenAlive`: a cheap check that may say no too
 * early.
 */
export async function endContainer(
  engine: EngineClient,
  { lobby_id }: Handle,
  { ending, stop_signal }: { ending: Ending; stop_signal: string },
  isSeenAlive: () => boolean,
  container = containerName(lobby_id),
): Promise<void> {
  const path = `/containers/${container}`
  const signal = (name: string): Promise<unknown> =>
    engine.call('POST', `${path}/kill`, { query: { signal: name } }).catch(ignoreEnded)
  let is_terminated = false
  let poll_ms = POLL_MS_MIN
  while (isSeenAlive() || (await engine.find<ContainerInspect>(`${path}/json`))?.State.Running) {
    const over_ms = performance.now() - ending.deadline_ms
    if (over_ms > KILL_WAIT_MS_MAX) throw new Error(`The container of lobby ${lobby_id} does not end.`)
    if (over_ms >= 0) await signal('SIGKILL')
    else if (!is_terminated) {
      await signal(stop_signal)
      is_terminated = true
    }
    await sleep(poll_ms)
    poll_ms = Math.min(POLL_MS_MAX, poll_ms * POLL_GROWTH)
  }
}

/** For a signal to a container that ends at this moment: Docker returns 409 then, and Podman sometimes 500. */
function ignoreEnded(error: unknown): void {
  const is_podmans = error instanceof EngineError && error.status === 500
  if (!is_podmans || !error.message.includes('container state improper')) ignoreDone(error)
}

/** All containers of the platform, whatever their state. */
export function containersOf({ engine, platform }: DockerHost): Promise<ContainerSummary[]> {
  return engine.call<ContainerSummary[]>('GET', '/containers/json', {
    query: { all: '1', ...platformFilter(platform) },
  })
}

export async function removeContainer(engine: EngineClient, lobby_id: string): Promise<void> {
  await removeById(engine, containerName(lobby_id))
  await engine.call('DELETE', `/volumes/${containerName(lobby_id)}`, { query: { force: '1' } }).catch(ignoreDone)
}

/** `stateOf`: what this runner knows of a lobby. Returns the facts of the containers that stay, by lobby id. */
export async function sweepContainers(
  host: DockerHost,
  now_ms: number,
  stateOf: (lobby_id: string) => 'unknown' | 'starting' | 'running',
): Promise<Map<string, ContainerFacts>> {
  const kept = new Map<string, ContainerFacts>()
  for (const summary of await containersOf(host)) {
    const facts = factsOf(summary.Labels)
    if (facts === null) continue
    const { lobby_id } = facts
    const state = stateOf(lobby_id)
    if (neverRuns(summary.Labels)) {
      if (state !== 'starting') await removeById(host.engine, summary.Id)
    } else if (state !== 'unknown' || !isOver(host, lobby_id, summary, now_ms)) kept.set(lobby_id, facts)
    else await removeContainer(host.engine, lobby_id)
  }
  await sweepVolumes(host, (lobby_id) => kept.has(lobby_id) || stateOf(lobby_id) !== 'unknown')
  for (const group of host.cgroups?.list() ?? []) {
    if (!kept.has(group) && stateOf(group) === 'unknown') host.cgroups?.remove(group)
  }
  return kept
}

/** A runner that was killed may leave a volume whose containers are gone. */
async function sweepVolumes({ engine, platform }: DockerHost, isKept: (lobby_id: string) => boolean): Promise<void> {
  type Listed = { Volumes: { Name: string; Labels: Record<string, string> | null }[] | null }
  const { Volumes } = await engine.call<Listed>('GET', '/volumes', { query: platformFilter(platform) })
  for (const { Name, Labels } of Volumes ?? []) {
    const facts = factsOf(Labels ?? {})
    if (facts === null || isKept(facts.lobby_id)) continue
    await engine.call('DELETE', `/volumes/${Name}`, { query: { force: '1' } }).catch(ignoreDone)
  }
}

/**
 * Its exit is recorded, or it never started, or no caller asked for its end. One whose exit is recorded may run: the engine
 * completes the start of a runner that was killed.
 */
function isOver(
  { lobbies_folder }: DockerHost,
  lobby_id: string,
  { State, Created }: ContainerSummary,
  now_ms: number,
): boolean {
  if (State === 'created' || readEnded(folderOfLobby(lobbies_folder, lobby_id)) !== null) return true
  if (State === 'running' || State === 'paused' || State === 'restarting') return false
  return Created * 1_000 < now_ms - UNASKED_MS_MAX
}

export async function removeById(engine: EngineClient, id: string): Promise<void> {
  await engine.call('DELETE', `/containers/${id}`, { query: { force: '1', v: '1' } }).catch(ignoreDone)
}

/** Cleans the folders of lobbies that have ended, and are neither kept nor known. */
export async function trimEnded(
  folders: LobbyFolders,
  isUsed: (lobby_id: string) => boolean,
  ended_logs: EndedLogs,
  now_ms: number,
): Promise<void> {
  for (const lobby_id of folders.unfinished.ids()) {
    if (isUsed(lobby_id)) continue
    const folder = folders.of(lobby_id)
    // Without a container there is no more output.
    markOutputWhole(folder)
    const is_unasked = (changeTime(folder) ?? 0) < now_ms - UNASKED_MS_MAX
    if (readEnded(folder) !== null || is_unasked) await ended_logs.trim(lobby_id)
  }
  await ended_logs.sweep()
}
