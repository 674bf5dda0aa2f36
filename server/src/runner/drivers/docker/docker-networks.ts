// The networks of lobbies in containers: those of ../../network/, and the container that leads other containers into them.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../../config/config.ts'
import { platformFolder } from '../../folders/names.ts'
import type { LobbyNetworks, NetworkOptions } from '../../network/lobby-networks.ts'
import { openNetworks, resolverText } from '../../network/open-networks.ts'
import type { ETC_FILES } from './container.ts'
import type { EngineClient } from './engine.ts'
import { NetworkContainer } from './network-container.ts'

export type DockerNetworkOptions = {
  data_dir: string
  log: Logger
  /** Whether lobbies must have networks of their own. */
  sandbox: Config['sandbox']
  /** Null: lobbies share the network of this machine. */
  network: NetworkOptions | null
}

export type DockerNetworks = {
  lobbies: LobbyNetworks
  container: NetworkContainer
  /** The folder with the ETC_FILES of lobbies. */
  etc_folder: string
}

/** Null: lobbies share the network of this machine, as the log says. `is_mapped`: whether the engine maps users. */
export async function openDockerNetworks(
  engine: EngineClient,
  platform: string,
  is_mapped: boolean,
  options: DockerNetworkOptions,
): Promise<DockerNetworks | null> {
  const data_dir = resolve(options.data_dir)
  const own_folder = platformFolder(join(data_dir, 'lobbies'))
  const opened: { container: NetworkContainer | null } = { container: null }
  async function tryNamespace(namespace: string): Promise<void> {
    if (is_mapped) throw new Error('the container engine is rootless, or maps the users of containers')
    opened.container = await NetworkContainer.open(engine, platform)
    await opened.container.tryNamespace(namespace)
  }
  let lobbies: LobbyNetworks | null = null
  try {
    const network = options.sandbox === 'off' ? null : options.network
    lobbies = await openNetworks({ ...options, data_dir, own_folder, network, tryNamespace })
  } finally {
    if (lobbies === null) await opened.container?.close({ image: true })
  }
  if (lobbies === null || opened.container === null) return null
  const etc_folder = join(own_folder, 'etc')
  mkdirSync(etc_folder, { recursive: true })
  for (const [name, text] of Object.entries(etcTexts(lobbies))) {
    writeFileSync(join(etc_folder, name), text, { mode: 0o644 })
  }
  return { lobbies, container: opened.container, etc_folder }
}

function etcTexts(lobbies: LobbyNetworks): Record<(typeof ETC_FILES)[number], string> {
  return {
    hostname: 'lobby\n',
    hosts: '127.0.0.1 localhost lobby\n::1 localhost\n',
    'resolv.conf': resolverText(lobbies),
  }
}
