// Opens a driver of containers on a data folder.
import pino from 'pino'
import { readConfig } from '../../src/config/read-config.ts'
import { openDockerDriver } from '../../src/runner/drivers/docker/docker.ts'
import type { Driver } from '../../src/runner/drivers/driver.ts'
import { openSwarmDriver } from '../../src/runner/drivers/swarm/swarm.ts'

/** `socket`: of the engine. `swarm`: settings of the platform. */
export type EngineDriverOptions = { data_dir: string; base_image: string | null } & (
  | { socket: string }
  | { swarm: Record<string, string> }
)

export function openEngineDriver(options: EngineDriverOptions): Promise<Driver> {
  const { data_dir, base_image } = options
  const common = {
    data_dir,
    log: pino({ level: 'silent' }),
    sandbox: 'available' as const,
    network: null,
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  }
  if ('socket' in options) return openDockerDriver({ ...common, docker: { socket: options.socket, base_image } })
  const { swarm, registries, registry_auth_file, node_grace_ms } = readConfig(options.swarm)
  return openSwarmDriver({
    ...common,
    swarm,
    base_image,
    registries: { registries, registry_auth_file },
    node_grace_ms,
  })
}
