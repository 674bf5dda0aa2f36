// Starts the task of a lobby on one node: image, files, service. Resolves when its container runs. What a start that fails
// has made is left to the caller.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ContainerFacts,
  type ContainerInspect,
  type ContainerSummary,
  containerName,
  labelsOf,
  neverRuns,
  neverRunsLabels,
  ownerOf,
} from '../docker/container.ts'
import { removeById } from '../docker/end-container.ts'
import { EngineError } from '../docker/engine.ts'
import { besideBody, type FilledScratch, fillScratch, makeScratch } from '../docker/scratch-files.ts'
import { programOfArchive, programOfImage, type RefusedStart } from '../docker/start-container.ts'
import type { ImageRoot, RunPlace, RunSpec } from '../driver.ts'
import type { EngineNode } from './engine-node.ts'
import { ELECTION_MS_MAX, type Managers, NoManagerError } from './managers.ts'
import type { PulledImage, RegistryImages } from './registry-images.ts'
import { type ServiceBody, START_LABEL, serviceBody } from './service.ts'

/** How long the Swarm may take from the service to the running container. */
const START_MS_MAX = 120_000
const POLL_MS_MIN = 20
const POLL_MS_MAX = 250
const POLL_GROWTH = 1.3
/** Polls of the engine between two questions to a manager. */
const POLLS_PER_TASK = 4
const CREATED = 'created'
const HTTP_CONFLICT = 409
const ELECTION_POLL_MS = 500
/** States of a task that will not run. */
const FAILED_TASKS = new Set(['rejected', 'failed', 'shutdown', 'orphaned', 'remove'])

type Swarm = { platform: string; managers: Managers; images: RegistryImages }
type Task = { Status: { State: string; Err?: string; Message?: string } }

export async function startTask(
  { platform, managers, images }: Swarm,
  node: EngineNode,
  spec: RunSpec,
  facts: ContainerFacts,
  place: RunPlace,
): Promise<ContainerInspect | RefusedStart> {
  const { lobby_id, files = [], image: root } = spec
  const labels = labelsOf(platform, facts)
  const image = await images.pull(node, spec)
  if ('refused' in image) return image
  const found = await programOf(node, image, spec, root ?? null, labels)
  if ('refused' in found) return found
  const owner = ownerOf(spec, facts)
  await makeScratch(node.engine, { lobby_id, labels, owner }, spec.tier)
  const volume_folder = await folderOfVolume(node, lobby_id)
  const scratch = files.length === 0 ? null : await fill(node, { lobby_id, image_id: image.id, labels, owner, files })
  try {
    const body = serviceBody({
      ...{ spec, facts, labels, owner, place, volume_folder, start_id: randomUUID() },
      image: image.reference,
      program: found.command,
      swarm_id: node.facts!.swarm_id,
    })
    await createService(managers, body, image.auth)
    return await running(managers, node, lobby_id)
  } finally {
    await scratch?.release()
  }
}

/**
 * A manager that is lost in the middle may have made the service, or may still make it. So a service of the same name that
 * belongs to this start counts as made; of any other start it is a failure. The managers may be electing a leader meanwhile.
 */
async function createService(managers: Managers, body: ServiceBody, headers: PulledImage['auth']): Promise<void> {
  const end_ms = performance.now() + ELECTION_MS_MAX
  for (;;) {
    try {
      await managers.call('POST', '/services/create', { body, headers })
      return
    } catch (error) {
      if (error instanceof EngineError && error.status === HTTP_CONFLICT && (await isMadeByStart(managers, body)))
        return
      if (!(error instanceof NoManagerError) || managers.failure !== null || performance.now() > end_ms) throw error
    }
    await sleep(ELECTION_POLL_MS)
  }
}

async function isMadeByStart(managers: Managers, { Name, Labels }: ServiceBody): Promise<boolean> {
  const { Spec } = await managers.call<{ Spec: { Labels?: Record<string, string> | null } }>('GET', `/services/${Name}`)
  return Spec.Labels?.[START_LABEL] === Labels[START_LABEL]
}

async function folderOfVolume({ engine }: EngineNode, lobby_id: string): Promise<string> {
  return (await engine.call<{ Mountpoint: string }>('GET', `/volumes/${containerName(lobby_id)}`)).Mountpoint
}

function programOf(
  { programs }: EngineNode,
  image: PulledImage,
  spec: RunSpec,
  root: ImageRoot | null,
  labels: Readonly<Record<string, string>>,
): Promise<{ command: string } | RefusedStart> {
  const probe = { name: `${containerName(spec.lobby_id)}-probe`, labels: neverRunsLabels(labels) }
  return root === null
    ? programOfArchive(programs, image, spec, probe)
    : programOfImage(programs, image, spec, root, probe)
}

/** The container of the lobby does not exist yet, so another one that never runs shows what the volume has. */
async function fill({ engine }: EngineNode, plan: Parameters<typeof fillScratch>[1]): Promise<FilledScratch> {
  const name = `${containerName(plan.lobby_id)}-seen`
  await engine.call('POST', '/containers/create', { query: { name }, body: besideBody(plan) })
  const filled = await fillScratch(engine, plan, name)
  return {
    async release() {
      await filled.release()
      await removeById(engine, name)
    },
  }
}

/** The container on this node, whatever its state; null: the Swarm has not made it. */
export async function findContainer({ engine }: EngineNode, lobby_id: string): Promise<ContainerInspect | null> {
  const filters = JSON.stringify({ label: [`muster.lobby_id=${lobby_id}`] })
  const listed = await engine.call<ContainerSummary[]>('GET', '/containers/json', { query: { all: '1', filters } })
  const one = listed.find(({ Labels }) => !neverRuns(Labels))
  return one === undefined ? null : engine.find<ContainerInspect>(`/containers/${one.Id}/json`)
}

async function running(managers: Managers, node: EngineNode, lobby_id: string): Promise<ContainerInspect> {
  const end_ms = performance.now() + START_MS_MAX
  let poll_ms = POLL_MS_MIN
  for (let polls = 1; performance.now() < end_ms; polls++) {
    const found = await findContainer(node, lobby_id)
    if (found !== null && found.State.Status !== CREATED && !found.State.StartedAt.startsWith('0001')) return found
    if (polls % POLLS_PER_TASK === 0) {
      const fault = await faultOfTask(managers, lobby_id)
      // It may have run and ended between the two questions.
      const last = fault === null ? null : await findContainer(node, lobby_id)
      if (last !== null && last.State.Status !== CREATED && !last.State.StartedAt.startsWith('0001')) return last
      if (fault !== null) throw new Error(`The Swarm does not start a lobby on ${node.node_id}: ${fault}`)
    }
    await sleep(poll_ms)
    poll_ms = Math.min(POLL_MS_MAX, poll_ms * POLL_GROWTH)
  }
  throw new Error(`The Swarm has not started a lobby on ${node.node_id} within ${START_MS_MAX / 1_000} s.`)
}

/** Why the task will not run; null while it may. */
async function faultOfTask(managers: Managers, lobby_id: string): Promise<string | null> {
  const filters = JSON.stringify({ service: [containerName(lobby_id)] })
  // The container itself is seen without a manager.
  const tasks = await managers.call<Task[]>('GET', '/tasks', { query: { filters } }).catch(() => [])
  const failed = tasks.find(({ Status }) => FAILED_TASKS.has(Status.State))
  return failed === undefined ? null : (failed.Status.Err ?? failed.Status.Message ?? failed.Status.State)
}
