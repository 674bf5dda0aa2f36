// Prepares the Swarm driver: the engines, the store of images and its server.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../../config/config.ts'
import { StartError } from '../../../config/start-error.ts'
import { platformFolder } from '../../folders/names.ts'
import { ImageServer } from '../../registry/image-server.ts'
import type { Registries } from '../../registry/pull-image.ts'
import { ServedImages } from '../../registry/served-images.ts'
import type { EngineAddress, EngineTls } from '../docker/engine.ts'
import { EngineNode } from './engine-node.ts'
import { Managers } from './managers.ts'
import { RegistryImages } from './registry-images.ts'

const PLATFORM_FILE = 'swarm-platform'
const NS_PER_MS = 1_000_000
/** Heartbeats that a node misses until the Swarm gives it up. */
const HEARTBEATS_PER_LOSS = 3

export type SwarmHostOptions = {
  data_dir: string
  log: Logger
  now: () => number
  sandbox: Config['sandbox']
  /** Null: the operator says that builds are trusted. */
  network: object | null
  swarm: Config['swarm']
  registries: Registries
  base_image: string | null
  node_grace_ms: number
}

export type SwarmHost = {
  lobbies_folder: string
  /** Identifies the platform among those that share the Swarm. */
  platform: string
  nodes: readonly EngineNode[]
  managers: Managers
  images: RegistryImages
  server: ImageServer
}

/** Throws a StartError where the Swarm cannot be used. Logs once what does not work. */
export async function prepareSwarmHost(options: SwarmHostOptions): Promise<SwarmHost> {
  const { data_dir, log, swarm, base_image, registries, now } = options
  refuseUntrusted(options)
  const folders = ['builds', 'lobbies', 'registry'].map((name) => resolve(data_dir, name))
  const [builds_folder = '', lobbies_folder = '', folder = ''] = folders
  for (const one of [...folders, platformFolder(lobbies_folder)]) {
    mkdirSync(one, { recursive: true })
    chmodSync(one, 0o711)
  }
  const platform = platformOf(lobbies_folder)
  const nodes = openNodes(swarm, platform, now)
  const managers = new Managers(nodes)
  try {
    await checkAll(nodes, managers, options)
    const served = await ServedImages.open(folder, now)
    const server = await openServer(served, swarm, log)
    const registry = `${swarm.registry.host}:${server.port}`
    const images = new RegistryImages({
      ...{ served, folder, base_image, registries, nodes, server, registry, platform, builds_folder, now },
    })
    return { lobbies_folder, platform, nodes, managers, images, server }
  } catch (error) {
    for (const node of nodes) node.close()
    throw error
  }
}

/** Throws a StartError when a file of MUSTER_SWARM_TLS cannot be read. Nothing is connected yet. */
export function openNodes(swarm: Config['swarm'], platform: string, now: () => number): EngineNode[] {
  const tls = readTls(swarm.tls_folder)
  return swarm.engines.map((engine) => new EngineNode(engine.node_id, addressOf(engine, tls), platform, now))
}

/** Lobbies of one engine share its bridge, so they reach each other and everything that the machine reaches. */
function refuseUntrusted({ sandbox, network, log }: SwarmHostOptions): void {
  if (sandbox === 'required' && network !== null) {
    throw new StartError(
      'A network for each lobby is required, and lobbies of a Swarm share the bridge of their engine. Set MUSTER_LOBBY_NETWORK=machine to run trusted builds there.',
    )
  }
  log.warn('lobbies share the bridges of their engines; run only trusted builds')
}

async function checkAll(nodes: readonly EngineNode[], managers: Managers, options: SwarmHostOptions): Promise<void> {
  const { log } = options
  await Promise.all(nodes.map((node) => node.check()))
  for (const { node_id, failure } of nodes) if (failure !== null) log.warn({ node_id, failure }, 'a node is away')
  if (nodes.every(({ is_here }) => !is_here)) {
    const reasons = nodes.map(({ node_id, failure }) => `${node_id}: ${failure}`).join('; ')
    throw new StartError(`No engine of MUSTER_SWARM_ENGINES responds (${reasons}). Start them, or correct the setting.`)
  }
  await managers.check()
  if (!managers.are_here) log.warn('no manager of the Swarm takes requests; no lobby starts until one does')
  else await checkHeartbeat(managers, options)
}

async function checkHeartbeat(managers: Managers, { node_grace_ms, log }: SwarmHostOptions): Promise<void> {
  const remedy = await heartbeatRemedy(managers, node_grace_ms).catch(() => null)
  if (remedy !== null) log.warn({ remedy }, SHORT_HEARTBEAT)
}

export const SHORT_HEARTBEAT = 'the Swarm ends lobbies of a node that returns within the grace of the platform'

/** A Swarm that gives a node up earlier than the platform ends its tasks when it returns. Null: it waits long enough. */
export async function heartbeatRemedy(managers: Managers, node_grace_ms: number): Promise<string | null> {
  type Found = { Spec?: { Dispatcher?: { HeartbeatPeriod?: number } } }
  const { Spec } = await managers.call<Found>('GET', '/swarm')
  const heartbeat_ms = (Spec?.Dispatcher?.HeartbeatPeriod ?? 0) / NS_PER_MS
  if (heartbeat_ms * HEARTBEATS_PER_LOSS >= node_grace_ms) return null
  return `docker swarm update --dispatcher-heartbeat ${Math.ceil(node_grace_ms / HEARTBEATS_PER_LOSS / 1_000)}s`
}

async function openServer(served: ServedImages, swarm: Config['swarm'], log: Logger): Promise<ImageServer> {
  const { host, port } = swarm.registry
  const own = readServerTls(swarm.tls_folder)
  if (own === null)
    log.warn({ host }, 'images are served without TLS; engines need insecure-registries (docs/containers.md)')
  try {
    return await ImageServer.open(served, { host, port, tls: own })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new StartError(`Images cannot be served on ${host}:${port} (${code}). Correct MUSTER_SWARM_REGISTRY.`)
  }
}

/** Random, because several platforms may share a Swarm. */
function platformOf(lobbies_folder: string): string {
  const path = join(platformFolder(lobbies_folder), PLATFORM_FILE)
  if (!existsSync(path)) writeFileSync(path, `muster-${randomBytes(8).toString('hex')}`, { mode: 0o600, flush: true })
  return readFileSync(path, 'utf8')
}

function addressOf(engine: Config['swarm']['engines'][number], tls: EngineTls | null): EngineAddress {
  return 'socket' in engine ? { socket: engine.socket } : { host: engine.host, port: engine.port, tls }
}

/** In the names of docker's client: ca.pem, cert.pem, key.pem. */
function readTls(folder: string | null): EngineTls | null {
  if (folder === null) return null
  const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readPem(join(folder, name)))
  return { ca: ca!, cert: cert!, key: key! }
}

/** registry.pem and registry-key.pem; null where the folder has none. */
function readServerTls(folder: string | null): { cert: string; key: string } | null {
  if (folder === null || !existsSync(join(folder, 'registry.pem'))) return null
  return { cert: readPem(join(folder, 'registry.pem')), key: readPem(join(folder, 'registry-key.pem')) }
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new StartError(`${path} cannot be read (${code}). Correct MUSTER_SWARM_TLS.`)
  }
}
