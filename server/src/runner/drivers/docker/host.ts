// Prepares the machine for the docker driver: the folders, the engine, the base image, the control groups.
import { hash } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { StartError } from '../../../config/start-error.ts'
import { platformFolder } from '../../folders/names.ts'
import { type Cgroups, openCgroups } from '../cgroups.ts'
import type { ExitReason } from '../driver.ts'
import { type DockerNetworkOptions, type DockerNetworks, openDockerNetworks } from './docker-networks.ts'
import { EngineClient } from './engine.ts'
import type { EngineImage } from './image-programs.ts'

export type DockerSettings = {
  /** Path of the engine's Unix socket. */
  socket: string
  /** A name or id of an image that the engine has; null: builds of kind archive do not run. */
  base_image: string | null
}

export type DockerHostOptions = DockerNetworkOptions & { docker: DockerSettings }

export type DockerHost = {
  engine: EngineClient
  lobbies_folder: string
  /** Identifies the platform among those that share the engine, and names its control group. */
  platform: string
  base_image: string | null
  /** Null: containers have limits, and their processor time after the end is unknown. */
  cgroups: Cgroups | null
  /** Whether every lobby gets a uid of its own. */
  gives_uids: boolean
  /** Null: lobbies share the network of this machine. */
  networks: DockerNetworks | null
  /** Podman does not know owners of folders in memory. */
  is_podman: boolean
}

/** `BuildahVersion`: of Podman only. */
type Info = {
  BuildahVersion?: string
  ServerVersion?: string
  CgroupDriver?: string
  SecurityOptions?: string[]
  OSType?: string
}

/** Throws a StartError where the engine cannot be used. Logs once what does not work. */
export async function prepareDockerHost(options: DockerHostOptions): Promise<DockerHost> {
  const { data_dir, docker, log } = options
  const folders = ['builds', 'lobbies'].map((name) => resolve(data_dir, name))
  const lobbies_folder = resolve(data_dir, 'lobbies')
  for (const folder of [...folders, platformFolder(lobbies_folder)]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o711)
  }
  const engine = new EngineClient(docker.socket)
  const info = await engine.call<Info>('GET', '/info').catch((error: unknown) => {
    engine.close()
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(
      `The container engine does not respond on ${docker.socket}: ${reason}. Start it, let the platform's user open the socket, or set MUSTER_DOCKER_SOCKET.`,
    )
  })
  const platform = `muster-${hash('sha256', resolve(data_dir)).slice(0, 16)}`
  const cgroups = info.CgroupDriver === 'cgroupfs' ? openCgroups(platform, { is_for_engine: true }) : null
  if (cgroups === null || 'unavailable' in cgroups) {
    log.warn(
      { cgroup_driver: info.CgroupDriver },
      'processor time of ended lobbies is not counted: the platform cannot make control groups for containers',
    )
  }
  // A mapped user namespace has only some of the uids.
  const is_mapped = (info.SecurityOptions ?? []).some((option) => /^name=(rootless|userns)/.test(option))
  const networks = await openDockerNetworks(engine, platform, is_mapped, options).catch((error: unknown) => {
    engine.close()
    if (cgroups !== null && !('unavailable' in cgroups)) cgroups.close()
    throw error
  })
  const host: DockerHost = {
    engine,
    lobbies_folder,
    platform,
    base_image: docker.base_image,
    cgroups: cgroups === null || 'unavailable' in cgroups ? null : cgroups,
    gives_uids: !is_mapped,
    networks,
    is_podman: info.BuildahVersion !== undefined,
  }
  const image = await imageOf(host)
  if ('refused' in image) log.warn({ reason: image.message }, 'builds of kind archive do not run')
  return host
}

/** The base image as it is now. Its operator may replace it while lobbies run. */
export async function imageOf({
  engine,
  base_image,
}: Pick<DockerHost, 'engine' | 'base_image'>): Promise<EngineImage | { refused: ExitReason; message: string }> {
  if (base_image === null) {
    const message = 'This machine has no base image for archives. Its operator sets MUSTER_DOCKER_BASE_IMAGE.'
    return { refused: 'no_build', message }
  }
  type Found = { Id: string; Config?: { Env?: string[] | null } | null }
  const found = await engine.find<Found>(`/images/${base_image}/json`)
  if (found === null) {
    const message = `The container engine has no image ${base_image}. Its operator loads it, or changes MUSTER_DOCKER_BASE_IMAGE.`
    return { refused: 'no_build', message }
  }
  return { id: found.Id, env: found.Config?.Env ?? [], working_folder: '/' }
}
