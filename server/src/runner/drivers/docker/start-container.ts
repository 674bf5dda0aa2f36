// Starts the container of a lobby: its image, its program, its control group, its files. A container of a start that fails
// is left to the caller.
import { isInNamespace } from '../../network/namespace.ts'
import { BUILD_MOUNT } from '../bubblewrap.ts'
import type { RunSpec, Started } from '../driver.ts'
import { findInBuild, notFound } from '../find-program.ts'
import {
  type ContainerFacts,
  type ContainerInspect,
  containerBody,
  containerName,
  handleOf,
  labelsOf,
} from './container.ts'
import { type DockerHost, imageOf } from './host.ts'
import type { ImagePrograms } from './image-programs.ts'
import { MACHINE, type NetworkEntry } from './network-container.ts'
import { fillScratch, scratchMount } from './scratch-files.ts'

const ARCHIVES_ONLY =
  'The build is a container image, and this machine runs only builds of kind archive (MUSTER_DRIVER=docker). Upload an archive, or its operator sets MUSTER_DRIVER=process.'

export async function startContainer(
  host: DockerHost,
  programs: ImagePrograms,
  spec: RunSpec,
  facts: ContainerFacts,
): Promise<Started> {
  const { engine } = host
  const { lobby_id, files = [] } = spec
  if (spec.image) return { refused: 'no_build', message: ARCHIVES_ONLY }
  const image = await imageOf(host)
  if ('refused' in image) return image
  const [name = ''] = spec.args
  const in_build = findInBuild(spec.build_folder, BUILD_MOUNT, name)
  if (in_build !== null && 'refused' in in_build) return in_build
  if (in_build === null && name.includes('/') && !name.startsWith('/')) return notFound(name, 'the image')
  const labels = labelsOf(host.platform, facts)
  const container = containerName(lobby_id)
  const entry = await entryOf(host, facts)
  const body = containerBody({
    spec,
    image_id: image.id,
    program: in_build?.command ?? name,
    labels,
    facts,
    cgroup_parent: makeGroup(host, spec, facts),
    scratch_mount: files.length === 0 ? null : scratchMount({ lobby_id, labels, uid: facts.uid }, spec.tier),
    network_mode: entry.network_mode,
    etc_folder: host.networks?.etc_folder ?? null,
  })
  await engine.call('POST', '/containers/create', { query: { name: container }, body })
  if (in_build === null) {
    const program = await programs.find(container, image, name)
    if ('refused' in program) return program
  }
  const plan = { lobby_id, image_id: image.id, labels, uid: facts.uid, files }
  const scratch = files.length === 0 ? null : await fillScratch(engine, plan)
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

/** The path of the group around the container; null where the platform makes none. */
function makeGroup({ cgroups, platform }: DockerHost, { tier }: RunSpec, { group }: ContainerFacts): string | null {
  if (cgroups === null || group === null) return null
  cgroups.create(group)
  cgroups.limit(group, tier)
  return `/${platform}/${group}`
}
