// Starts the container of a lobby: its image, its program, its control group, its files. A container of a start that fails
// is left to the caller.
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
  const body = containerBody({
    spec,
    image_id: image.id,
    program: in_build?.command ?? name,
    labels,
    facts,
    cgroup_parent: makeGroup(host, spec, facts),
    scratch_mount: files.length === 0 ? null : scratchMount({ lobby_id, labels, uid: facts.uid }, spec.tier),
  })
  await engine.call('POST', '/containers/create', { query: { name: container }, body })
  if (in_build === null) {
    const program = await programs.find(container, image, name)
    if ('refused' in program) return program
  }
  const plan = { lobby_id, image_id: image.id, labels, uid: facts.uid, files }
  const scratch = files.length === 0 ? null : await fillScratch(engine, plan)
  try {
    await engine.call('POST', `/containers/${container}/start`)
  } finally {
    await scratch?.release()
  }
  const found = await engine.find<ContainerInspect>(`/containers/${container}/json`)
  if (found === null) throw new Error('The container of a lobby was removed while it started.')
  return { handle: handleOf(found, facts) }
}

/** The path of the group around the container; null where the platform makes none. */
function makeGroup({ cgroups, platform }: DockerHost, { tier }: RunSpec, { group }: ContainerFacts): string | null {
  if (cgroups === null || group === null) return null
  cgroups.create(group)
  cgroups.limit(group, tier)
  return `/${platform}/${group}`
}
