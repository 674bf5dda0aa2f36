// The service of a lobby: one task that the Swarm starts once. The task is bound to one node, and the restart condition
// `none` keeps the Swarm from replacing it: neither after an end, nor after the loss of the node.

import { type ContainerFacts, containerName, ENGINE_LOG, type FolderOwner } from '../docker/container.ts'
import type { RunPlace, RunSpec } from '../driver.ts'
import { BUILD_MOUNT, SCRATCH_MOUNT } from '../driver.ts'

/** Names one start of a lobby. */
export const START_LABEL = 'muster.start'
const TMP_MOUNT = '/tmp'
/**
 * The folder of the lobby's volume, a second time. An engine refuses a mount whose folder does not exist. So a manager that was
 * suspended for a while cannot start the lobby again after its end: its volume is gone.
 */
const FENCE_MOUNT = '/run/.muster'
const TMP_MODE = 0o1777
/** The time between the stop signal and SIGKILL when the Swarm itself ends a task: an orphan, or a drained node. */
const STOP_GRACE_NS = 5_000_000_000

export type ServicePlan = {
  spec: RunSpec
  facts: ContainerFacts
  /** Labels of the container and of the service. */
  labels: Readonly<Record<string, string>>
  /** Reference to the image by its digest. */
  image: string
  program: string
  owner: FolderOwner
  swarm_id: string
  place: RunPlace
  /** Path of the volume's folder on the machine. */
  volume_folder: string
  start_id: string
}

export type ServiceBody = {
  Name: string
  Labels: Readonly<Record<string, string>>
  TaskTemplate: object
  Mode: object
  EndpointSpec: object
}

/** The body of the request that creates the service. `Env` contains a secret. */
export function serviceBody(plan: ServicePlan): ServiceBody {
  const { spec, facts, labels, image, program, owner, swarm_id, place } = plan
  const { lobby_id, tier } = spec
  const env = { ...spec.env, HOME: SCRATCH_MOUNT, TMPDIR: TMP_MOUNT }
  const { cpu_cores, memory_bytes, pids_max, tmp_bytes } = tier
  return {
    Name: containerName(lobby_id),
    Labels: { ...labels, [START_LABEL]: plan.start_id },
    TaskTemplate: {
      ContainerSpec: {
        Image: image,
        Labels: labels,
        Command: [program],
        Args: spec.args.slice(1),
        Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
        Dir: spec.image?.working_folder ?? BUILD_MOUNT,
        ...(owner !== null && { User: `${owner.uid}:${owner.gid}` }),
        Hostname: 'lobby',
        // The engine's small init is process 1, so that signals have their default effect in the program.
        Init: true,
        ReadOnly: true,
        OpenStdin: facts.has_input,
        TTY: spec.has_terminal ?? false,
        CapabilityDrop: ['ALL'],
        Healthcheck: { Test: ['NONE'] },
        StopSignal: facts.stop_signal,
        StopGracePeriod: STOP_GRACE_NS,
        Mounts: [
          { Type: 'volume', Source: containerName(lobby_id), Target: SCRATCH_MOUNT, VolumeOptions: { NoCopy: true } },
          { Type: 'bind', Source: plan.volume_folder, Target: FENCE_MOUNT, ReadOnly: true },
          { Type: 'tmpfs', Target: TMP_MOUNT, TmpfsOptions: { SizeBytes: tmp_bytes, Mode: TMP_MODE } },
        ],
      },
      Resources: {
        Limits: { NanoCPUs: Math.round(cpu_cores * 1e9), MemoryBytes: memory_bytes, Pids: pids_max },
      },
      RestartPolicy: { Condition: 'none', MaxAttempts: 0 },
      Placement: { Constraints: [`node.id==${swarm_id}`] },
      LogDriver: { Name: 'json-file', Options: ENGINE_LOG },
    },
    Mode: { Replicated: { Replicas: 1 } },
    EndpointSpec: {
      Ports: place.ports.map(({ inside, outside, protocol }) => ({
        Protocol: protocol,
        TargetPort: inside,
        PublishedPort: outside,
        PublishMode: 'host',
      })),
    },
  }
}
