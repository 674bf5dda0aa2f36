// Starts the container of a lobby: its image, its program, its control group, its files. A container of a start that fails
// is left to the caller.
import { isInNamespace } from '../../network/namespace.ts'
import type { ExitReason, ImageRoot, RunSpec, Started } from '../driver.ts'
import { BUILD_MOUNT } from '../driver.ts'
import { notExecutableInImage, notInImage, noWorkingFolder } from '../programs/find-image-program.ts'
import { findInBuild, notExecutable, notFound } from '../programs/find-program.ts'
import { withItsHead } from '../programs/program-needs.ts'
import {
  type ContainerFacts,
  type ContainerInspect,
  containerBody,
  containerName,
  handleOf,
  labelsOf,
  neverRunsLabels,
  ownerOf,
} from './container.ts'
import type { EngineImages } from './engine-images.ts'
import { type DockerHost, imageOf } from './host.ts'
import type { EngineImage, ImagePrograms, Probe } from './image-programs.ts'
import { MACHINE, type NetworkEntry } from './network-container.ts'
import { fillRoot, fillScratch, makeScratch } from './scratch-files.ts'

type Machine = { host: DockerHost; images: EngineImages; programs: ImagePrograms }
type Root = { image: EngineImage; command: string }
export type RefusedStart = { refused: ExitReason; message: string }

/** `images`: those of builds. */
export async function startContainer(machine: Machine, spec: RunSpec, facts: ContainerFacts): Promise<Started> {
  const { host } = machine
  const { engine } = host
  const { lobby_id, files = [] } = spec
  const labels = labelsOf(host.platform, facts)
  const probe = { name: `${containerName(lobby_id)}-probe`, labels: neverRunsLabels(labels) }
  const root = spec.image
    ? await rootOfImage(machine, spec, spec.image, probe)
    : await rootOfArchive(machine, spec, probe)
  if ('refused' in root) return root
  const { image, command } = root
  const owner = ownerOf(spec, facts)
  const has_volume = files.length > 0 && !host.is_podman
  const container = containerName(lobby_id)
  const entry = await entryOf(host, facts)
  const body = containerBody({
    spec,
    image_id: image.id,
    program: command,
    labels,
    facts,
    is_podman: host.is_podman,
    cgroup_parent: makeGroup(host, spec, facts),
    scratch_mount: !has_volume ? null : await makeScratch(engine, { lobby_id, labels, owner }, spec.tier),
    network_mode: entry.network_mode,
    etc_folder: host.networks?.etc_folder ?? null,
  })
  await engine.call('POST', '/containers/create', { query: { name: container }, body })
  const plan = { lobby_id, image_id: image.id, labels, owner, files }
  const scratch = has_volume ? await fillScratch(engine, plan) : null
  if (files.length > 0 && !has_volume) await fillRoot(engine, plan)
  try {
    await entry.run(() => engine.call('POST', `/containers/${container}/start`))
  } finally {
    await scratch?.release()
  }
  const found = await engine.find<ContainerInspect>(`/containers/${container}/json`)
  if (found === null) throw new Error('The container of a lobby was removed while it started.')
  const { Pid: pid } = found.State
  if (pid > 0 && facts.network !== null && isInNamespace(pid, facts.network.namespace) === false) {
    throw new Error('The container engine started a lobby in another network than its own.')
  }
  return { handle: handleOf(found, facts) }
}

async function entryOf({ networks }: DockerHost, { network }: ContainerFacts): Promise<NetworkEntry> {
  if (network === null) return MACHINE
  if (networks === null) throw new Error('A lobby has a network, and this driver has none for lobbies.')
  return networks.container.entryTo(network.namespace)
}

async function rootOfArchive({ host, programs }: Machine, spec: RunSpec, probe: Probe): Promise<Root | RefusedStart> {
  const image = await imageOf(host)
  if ('refused' in image) return image
  const found = await programOfArchive(programs, image, spec, probe)
  return 'refused' in found ? found : { image, ...found }
}

async function rootOfImage(
  { images, programs }: Machine,
  spec: RunSpec,
  root: ImageRoot,
  probe: Probe,
): Promise<Root | RefusedStart> {
  const image = await images.find(root.build_id ?? '')
  if ('refused' in image) return image
  const found = await programOfImage(programs, image, spec, root, probe)
  return 'refused' in found ? found : { image, ...found }
}

/** A program that the build does not have is searched in the image. */
export async function programOfArchive(
  programs: ImagePrograms,
  image: EngineImage,
  { args, build_folder }: Pick<RunSpec, 'args' | 'build_folder'>,
  probe: Probe,
): Promise<{ command: string } | RefusedStart> {
  const [name = ''] = args
  const in_build = findInBuild(build_folder, BUILD_MOUNT, name)
  // The image of the container decides about interpreters and loaders, and the engine does not show its files.
  if (in_build !== null) return withItsHead(in_build, name)
  const path = image.env.find((line) => line.startsWith('PATH='))?.slice('PATH='.length)
  const found = await programs.find(image, probe, { name, path, relative_to: null })
  if (found === 'nothing') return notFound(name, 'in the PATH of the image')
  return found === 'not_executable' ? notExecutable(name) : found
}

export async function programOfImage(
  programs: ImagePrograms,
  image: EngineImage,
  { args, env }: Pick<RunSpec, 'args' | 'env'>,
  { working_folder }: Pick<ImageRoot, 'working_folder'>,
  probe: Probe,
): Promise<{ command: string } | RefusedStart> {
  // The engine makes the image's own folder where no layer has it.
  const is_own = working_folder === image.working_folder
  if (!is_own && !(await programs.hasFolder(image, probe, working_folder))) return noWorkingFolder(working_folder)
  const [name = ''] = args
  const found = await programs.find(image, probe, { name, path: env.PATH, relative_to: working_folder })
  if (found === 'nothing') return notInImage(name)
  return found === 'not_executable' ? notExecutableInImage(name) : found
}

/** The path of the group around the container; null where the platform makes none. */
function makeGroup({ cgroups, platform }: DockerHost, { tier }: RunSpec, { group }: ContainerFacts): string | null {
  if (cgroups === null || group === null) return null
  cgroups.create(group)
  cgroups.limit(group, tier)
  return `/${platform}/${group}`
}
