// The container of a lobby: how it is made from a RunSpec, and what its labels say after a restart of the runner.
//
// A container is: created -> running -> exited (its exit is recorded) -> removed. The engine never restarts it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TERMINAL_COLUMNS, TERMINAL_ROWS } from '@musterhost/contract'
import { isGone, readStat } from '../../../node/procfs.ts'
import type { RunNetwork } from '../../network/lobby-networks.ts'
import type { Handle, RunSpec, Tier } from '../driver.ts'
import { BUILD_MOUNT, SCRATCH_MOUNT } from '../driver.ts'
import { seccompProfile } from './seccomp-profile.ts'

const TMP_MOUNT = '/tmp'
/** Output of one container that the engine keeps for a runner that is away. */
export const ENGINE_LOG = { 'max-size': '2m', 'max-file': '2' } as const

const SECCOMP = seccompProfile()

/** Files of /etc that an engine writes for a network. */
export const ETC_FILES = ['hostname', 'hosts', 'resolv.conf'] as const

const LABELS = {
  platform: 'muster.platform',
  lobby_id: 'muster.lobby_id',
  boot_id: 'muster.boot_id',
  uid: 'muster.uid',
  group: 'muster.group',
  has_input: 'muster.has_input',
  network: 'muster.network',
  stop_signal: 'muster.stop_signal',
  /** Marks containers beside that of a lobby: one writes its files, one looks up its program. */
  never_runs: 'muster.never_runs',
} as const

/** What the runner must know of a container after a restart. `group`: the control group around it. */
export type ContainerFacts = {
  lobby_id: string
  boot_id: string
  uid: number | null
  group: string | null
  has_input: boolean
  /** Null: it shares the network of the machine. */
  network: RunNetwork | null
  /** Asks the server to end. */
  stop_signal: string
}

export type ContainerState = {
  Status: string
  Running: boolean
  Pid: number
  ExitCode: number
  OOMKilled: boolean
  Error: string
  StartedAt: string
  FinishedAt: string
}
export type ContainerInspect = {
  Id: string
  Created: string
  State: ContainerState
  Config: { Labels: Labels; Tty: boolean }
}
export type ContainerSummary = { Id: string; State: string; Created: number; Labels: Labels }
type Labels = Readonly<Record<string, string>>

/** Containers and volumes of lobbies have this name. Lobby ids are unique, so a second start of a lobby fails. */
export const containerName = (lobby_id: string): string => `muster-${lobby_id}`

export const platformLabel = (platform: string): Labels => ({ [LABELS.platform]: platform })

/** Selects the containers, volumes and images of one platform. */
export function platformFilter(platform: string): { filters: string } {
  return { filters: JSON.stringify({ label: [`${LABELS.platform}=${platform}`] }) }
}

export function labelsOf(platform: string, facts: ContainerFacts): Labels {
  return {
    ...platformLabel(platform),
    [LABELS.lobby_id]: facts.lobby_id,
    [LABELS.boot_id]: facts.boot_id,
    [LABELS.uid]: facts.uid === null ? '' : String(facts.uid),
    [LABELS.group]: facts.group ?? '',
    [LABELS.has_input]: facts.has_input ? 'yes' : '',
    [LABELS.network]: facts.network === null ? '' : JSON.stringify(facts.network),
    [LABELS.stop_signal]: facts.stop_signal,
  }
}

/** Null for a container that this driver did not make. */
export function factsOf(labels: Labels): ContainerFacts | null {
  const lobby_id = labels[LABELS.lobby_id]
  if (lobby_id === undefined) return null
  const uid = labels[LABELS.uid] ?? ''
  const network = labels[LABELS.network] ?? ''
  return {
    lobby_id,
    boot_id: labels[LABELS.boot_id] ?? '',
    uid: uid === '' ? null : Number(uid),
    group: labels[LABELS.group] || null,
    has_input: labels[LABELS.has_input] === 'yes',
    network: network === '' ? null : (JSON.parse(network) as RunNetwork),
    stop_signal: labels[LABELS.stop_signal] || 'SIGTERM',
  }
}

export const neverRunsLabels = (labels: Labels): Labels => ({ ...labels, [LABELS.never_runs]: 'yes' })
export const neverRuns = (labels: Labels): boolean => labels[LABELS.never_runs] === 'yes'

export function handleOf({ Id, State }: ContainerInspect, facts: ContainerFacts): Handle {
  const { lobby_id, boot_id, uid, group, network } = facts
  // In another pid namespace the number belongs to another process, or to none.
  const start_time = isOfContainer(State.Pid, Id) ? (readStat(State.Pid)?.start_time ?? '') : ''
  const start_ts = Date.parse(State.StartedAt)
  return { lobby_id, pid: State.Pid, start_time, boot_id, sandbox: 'container', start_ts, uid, group, network }
}

/** Whether /proc of this process shows the container's first process by this number. */
function isOfContainer(pid: number, container_id: string): boolean {
  try {
    return pid > 0 && readFileSync(`/proc/${pid}/cgroup`, 'latin1').includes(container_id)
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

export type ContainerPlan = {
  spec: RunSpec
  image_id: string
  /** Absolute in the container, or a name that the image's PATH finds. */
  program: string
  labels: Labels
  facts: ContainerFacts
  /** The path of the parent control group; null: the engine's own. It limits processor time. */
  cgroup_parent: string | null
  /** The mount of the writable folder where it begins with files (scratch-files.ts); null: an empty folder in memory. */
  scratch_mount: object | null
  /** Network mode, as the engine names it. */
  network_mode: string
  /** The folder with the ETC_FILES of lobbies with a network of their own; null: no lobby has one. */
  etc_folder: string | null
  is_podman: boolean
}

/**
 * Owner of the writable folders: the lobby's own user, or the user of a container image. Null: the user of the base
 * image.
 */
export type FolderOwner = { uid: number; gid: number } | null

export function ownerOf({ image }: Pick<RunSpec, 'image'>, { uid }: ContainerFacts): FolderOwner {
  if (image) return { uid: image.uid, gid: image.gid }
  return uid === null ? null : { uid, gid: uid }
}

/** The body of the request that creates the container. `Env` contains a secret. */
export function containerBody(plan: ContainerPlan): object {
  const { spec, facts, scratch_mount, is_podman } = plan
  const owner = ownerOf(spec, facts)
  const user = owner === null ? {} : { User: `${owner.uid}:${owner.gid}` }
  const tmpfs = tmpfsOptions(spec.tier, is_podman ? null : owner)
  const env = { ...spec.env, HOME: SCRATCH_MOUNT, TMPDIR: TMP_MOUNT }
  return {
    Image: plan.image_id,
    Entrypoint: [plan.program],
    Cmd: spec.args.slice(1),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...user,
    WorkingDir: spec.image?.working_folder ?? BUILD_MOUNT,
    Labels: plan.labels,
    OpenStdin: facts.has_input,
    StdinOnce: false,
    Tty: spec.has_terminal ?? false,
    NetworkDisabled: false,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      // The engine's small init is process 1, so that signals have their default effect in the program.
      Init: true,
      NetworkMode: plan.network_mode,
      ReadonlyRootfs: true,
      Mounts: [
        ...(spec.image ? [] : [{ Type: 'bind', Source: spec.build_folder, Target: BUILD_MOUNT, ReadOnly: true }]),
        ...(scratch_mount === null ? [] : [scratch_mount]),
        ...(facts.network === null || plan.etc_folder === null ? [] : etcMounts(plan.etc_folder)),
      ],
      Tmpfs: {
        [TMP_MOUNT]: tmpfs,
        ...(scratch_mount === null && { [SCRATCH_MOUNT]: tmpfs }),
      },
      ShmSize: spec.tier.tmp_bytes,
      CapDrop: ['ALL'],
      // Podman takes the text for the path of a file.
      SecurityOpt: ['no-new-privileges', ...(SECCOMP === null || is_podman ? [] : [`seccomp=${SECCOMP}`])],
      ...limitsOf(spec.tier, plan),
      LogConfig: { Type: 'json-file', Config: ENGINE_LOG },
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      ...(spec.has_terminal && { ConsoleSize: [TERMINAL_ROWS, TERMINAL_COLUMNS] }),
    },
  }
}

/** Containers in one network share these files of the engine, so each lobby has the platform's instead. */
function etcMounts(folder: string): object[] {
  return ETC_FILES.map((name) => {
    return { Type: 'bind', Source: join(folder, name), Target: join('/etc', name), ReadOnly: true }
  })
}

/** Where the image has such a folder, the engine keeps its mode, so the owner must be the lobby's user. */
function tmpfsOptions({ tmp_bytes }: Tier, owner: FolderOwner): string {
  const access = owner === null ? 'mode=1777' : `mode=0700,uid=${owner.uid},gid=${owner.gid}`
  return `rw,exec,nosuid,nodev,size=${tmp_bytes},${access}`
}

/** With a group of the platform around the container, that group limits processor time, with its burst (../cgroups.ts). */
function limitsOf(
  { memory_bytes, pids_max, cpu_cores }: Tier,
  { cgroup_parent, is_podman }: Pick<ContainerPlan, 'cgroup_parent' | 'is_podman'>,
): object {
  // Podman does not report every end by lack of memory. In the platform's group alone, the limit is counted there.
  if (is_podman && cgroup_parent !== null) return { PidsLimit: pids_max, CgroupParent: cgroup_parent }
  const limits = { Memory: memory_bytes, MemorySwap: memory_bytes, PidsLimit: pids_max }
  if (cgroup_parent === null) return { ...limits, NanoCpus: Math.round(cpu_cores * 1e9) }
  return { ...limits, CgroupParent: cgroup_parent }
}
