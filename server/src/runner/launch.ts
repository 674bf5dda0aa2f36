// Starts one lobby: its game mode, its build, its ports, its row, its process. A player waits for it, so only the row is
// written before the process starts, because it must exist first. All else is recorded once the process runs.
import {
  type GameModeConfig,
  gameModesOf,
  type ImageOverrides,
  type PortConfig,
  type ReadyCheck,
  tierIn,
  variableOfPort,
} from '@musterhost/contract'
import type { ProgramAdditions } from '@musterhost/protocols'
import { LOBBY_PORTS } from '../config/edge.ts'
import type { RegionTier } from '../config/regions.ts'
import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import type { ImageStart } from '../objects/container-image/config.ts'
import { phase, type Ray } from '../observe/ray.ts'
import { type LobbyCredentials, UnreadableSecret } from '../tokens/lobby-credentials.ts'
import type { BuildSource, Builds, ReadyBuild } from './builds.ts'
import {
  type Driver,
  type DriverNode,
  type ExitReason,
  type Handle,
  type ImageRoot,
  neverRan,
  type RunPlace,
  type Tier,
} from './drivers/driver.ts'
import { lobbyPorts, programStart } from './environment.ts'
import type { NetworkWish, RunNetwork } from './network/lobby-networks.ts'
import { MACHINE_HOST, type Ports } from './ports.ts'
import type { ProtocolStart, Protocols } from './protocols/protocols.ts'
import { registryBuildId } from './registry/pull-image.ts'
import { insertRun, recordExit, type WantedLobby } from './rows.ts'

/** Processes and threads of one lobby, in every tier. Stops a fork bomb. */
const PIDS_MAX = 256
/** Where lobbies share the machine's network: away from the loopback addresses that programs use. */
const LOOPBACK_OF_PLAYERS = '127.64.0.0/10'
/** Where servers listen in a network that other machines reach. */
const ALL_ADDRESSES = '0.0.0.0'
/** Size of each private writable folder of one lobby in memory, in every tier. */
const TMP_BYTES = 64 * 1024 ** 2
const NOTHING_ADDED: ProgramAdditions = { env: {}, files: [] }
/** A file system needs a few hundred KB for its tables. */
const DISK_BYTES_MIN = 8 * 1024 ** 2
/** The bandwidth of a tier is in MB an hour, like prices. */
const BYTES_PER_SECOND_PER_MB_PER_HOUR = 1_000_000 / 3_600

/** `ports`: by name. `build_id`: null for a run that was taken over and whose row has none. */
export type Run = {
  handle: Handle
  ports: Readonly<Record<string, RunPort>>
  build_id: string | null
  ready_check: ReadyCheck
}

export type Launch = { ctx: Context; driver: Driver; builds: Builds; ports: Ports; protocols: Protocols }

/**
 * Returns null when another runner starts the lobby, or when its start failed. A failure is recorded and explained in its
 * log. Throws when that could not be recorded; the reconcile loop then resolves a row that was written.
 */
export async function launchLobby(
  launch: Launch,
  lobby: WantedLobby,
  build: ReadyBuild,
  ray: Ray | null,
): Promise<Run | null> {
  const { ctx, driver } = launch
  const mode = modeOf(lobby)
  if (mode === undefined) return recordFailedStart(launch, lobby, 'no_build', 'The version has no such game mode.')
  if (mode.network_mode === 'host' && ctx.config.host_port_ranges.length === 0) {
    const message = 'Network mode host is not allowed on this machine: MUSTER_HOST_PORT_RANGES is empty.'
    return recordFailedStart(launch, lobby, 'not_started', message)
  }
  // A port range belongs to the whole machine: the server itself chooses a free port of it.
  const with_number = mode.ports.filter(({ port_range }) => port_range === null)
  const fixed = with_number.find(({ port }) => port !== null)
  const has_own_network = driver.has_own_network && mode.network_mode !== 'host'
  if (fixed !== undefined && !has_own_network && driver.nodes === null) {
    return recordFailedStart(launch, lobby, 'no_network', needsNetwork(fixed))
  }
  const unable = driver.nodes === null ? null : needsThisMachine(mode)
  if (unable !== null) return recordFailedStart(launch, lobby, 'no_network', unable)
  const node = nodeOf(launch, lobby)
  if (node === undefined) return recordFailedStart(launch, lobby, 'not_started', 'No node of the region responds.')
  if (ctx.config.link !== null && mode.ports.some(({ admission }) => admission?.has_addresses)) {
    const message =
      'player_addresses works only on the machine of the platform: over a link, the server sees the address of its own node. Leave it out, or let the server read X-Player-Id or PROXY headers.'
    return recordFailedStart(launch, lobby, 'no_network', message)
  }
  const tier = tierOf(ctx, lobby, mode)
  const network = has_own_network ? await driver.takeNetwork(networkWish(mode, tier)) : null
  const pool = node?.ports ?? launch.ports
  const taken = network === null ? await pool.take(with_number.length) : []
  if (taken === null) return recordFailedStart(launch, lobby, 'no_ports', 'No port is free on this machine.')
  const resources: Resources = { network, node, pool, taken }
  const ports = portsFor(with_number, resources)
  const build_id = buildIdOf(mode)
  const row = { node_id: nodeIdOf(launch, node), ports, build_id, ready_check: mode.ready }
  try {
    if (!(await insertRun(ctx, lobby, driver.name, row))) return release(launch, resources)
    phase(ray, 'process')
    const inside = insidePorts(with_number, ports, node)
    const services = driver.nodes === null ? network : driver.nodes
    const credentials = await credentialsOf(launch, lobby)
    if (credentials === null) return release(launch, resources)
    const home = driver.homeOf(lobby.lobby_id)
    const { args, env, files } = programStart(ctx, lobby, mode, inside, services, {
      ...credentials,
      home,
      image: build.image,
      host: node === null ? MACHINE_HOST : ALL_ADDRESSES,
    })
    const own = { network, ports: lobbyPorts(ctx, lobby, mode, inside), home, token: credentials.token }
    const added = await protocolOf(launch, lobby, mode, own)
    if (added === null) return release(launch, resources)
    const started = await driver.start({
      lobby_id: lobby.lobby_id,
      build_folder: build.folder,
      image: build.image === null ? null : imageRootOf(build_id!, build.image, mode.image),
      args,
      env: { ...env, ...added.env },
      // A file of the version config stays.
      files: [...files, ...added.files.filter(({ path }) => !files.some((file) => file.path === path))],
      tier: limitsOf(lobby, tier),
      has_input: mode.standard_input,
      has_terminal: mode.terminal,
      network,
      place: node && placeOf(node, ports, inside),
    })
    if ('refused' in started) {
      await recordExit(ctx, lobby.lobby_id, neverRan(started.refused), [started.message])
      return release(launch, resources)
    }
    if (mode.protocol !== null) launch.protocols.started(started.handle)
    return { handle: started.handle, ports, build_id, ready_check: mode.ready }
  } catch (error) {
    release(launch, resources)
    throw error
  }
}

/** Returns null when a secret cannot be decrypted; the end of the run is recorded, with the reason. */
async function credentialsOf({ ctx, driver }: Launch, lobby: WantedLobby): Promise<LobbyCredentials | null> {
  try {
    return await ctx.lobby_credentials.issue(lobby)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    const { message } = error
    ctx.log.error({ err: error, lobby_id: lobby.lobby_id }, 'a secret of a game cannot be decrypted')
    driver.note(lobby.lobby_id, message)
    await recordExit(ctx, lobby.lobby_id, neverRan('not_started'), [message])
    return null
  }
}

/** What the server starts with for its protocol. Returns null when that cannot be served; the end of the run is recorded. */
async function protocolOf(
  { ctx, driver, protocols }: Launch,
  lobby: WantedLobby,
  mode: GameModeConfig,
  start: ProtocolStart,
): Promise<ProgramAdditions | null> {
  if (mode.protocol === null) return NOTHING_ADDED
  try {
    return await protocols.speak(lobby, mode, mode.protocol, start)
  } catch (error) {
    const { lobby_id } = lobby
    ctx.log.error({ err: error, lobby_id }, 'the protocol of a server cannot be served')
    const message = `This machine cannot serve the protocol ${mode.protocol.name}. The log of the runner says why.`
    driver.note(lobby_id, message)
    await recordExit(ctx, lobby_id, neverRan('not_started'), [message])
    return null
  }
}

/** The version config decides where both say something. */
function imageRootOf(
  build_id: string,
  image: ImageStart,
  { working_folder, user, stop_signal }: ImageOverrides,
): ImageRoot {
  return {
    build_id,
    uid: user?.uid ?? image.uid,
    gid: user?.gid ?? image.gid,
    working_folder: working_folder ?? image.working_folder,
    stop_signal: stop_signal ?? image.stop_signal,
  }
}

/** What one start has taken. `node`: null: this machine. `taken`: numbers of `pool`. */
type Resources = { network: RunNetwork | null; node: DriverNode | null; pool: Ports; taken: readonly number[] }

/** The node that the lobby was placed on, or one of its region. Null: this machine. Undefined: it does not respond. */
function nodeOf({ driver }: Launch, { node_id, region }: WantedLobby): DriverNode | null | undefined {
  if (driver.nodes === null) return null
  const fits = (node: DriverNode): boolean => node.node_id === node_id || (node_id === null && node.refusal === null)
  return driver.nodes.here().find((node) => fits(node) && (node.regions?.includes(region) ?? true))
}

/** For the row of a run. A run without a node has failed before it was given one. */
function nodeIdOf({ ctx, driver }: Pick<Launch, 'ctx' | 'driver'>, node: DriverNode | null): string {
  return node?.node_id ?? driver.nodes?.ids[0] ?? ctx.config.node_id
}

/** What a game mode wants that lobbies on other machines do not have; null: nothing. */
function needsThisMachine(mode: GameModeConfig): string | null {
  if (mode.network_mode === 'host') {
    return 'Network mode host and port ranges do not work in a Swarm. Give each port a name of its own.'
  }
  if (mode.protocol !== null) {
    return `A server that speaks ${mode.protocol.name} does not find the platform in a Swarm. Leave protocol out and call the platform, or use seats: edge.`
  }
  if (mode.ports.some(({ admission }) => admission?.has_addresses)) {
    return 'player_addresses does not work in a Swarm: the server sees the address of its node. Leave it out, or let the server read X-Player-Id or PROXY headers.'
  }
  return null
}

/** The numbers on which the server listens. On another machine, each lobby may listen on the number of its version config. */
function insidePorts(
  ports: readonly PortConfig[],
  made: Readonly<Record<string, RunPort>>,
  node: DriverNode | null,
): Readonly<Record<string, RunPort>> {
  if (node === null) return made
  return Object.fromEntries(ports.map(({ name, port }) => [name, { ...made[name]!, port: port ?? made[name]!.port }]))
}

function placeOf(
  { node_id }: DriverNode,
  made: Readonly<Record<string, RunPort>>,
  inside: Readonly<Record<string, RunPort>>,
): RunPlace {
  const ports = Object.entries(made).map(([name, { port, protocol }]) => {
    return {
      inside: inside[name]!.port,
      outside: port,
      protocol: protocol === 'udp' ? ('udp' as const) : ('tcp' as const),
    }
  })
  return { node_id, ports }
}

/** In a network of its own every lobby has the same numbers. */
function portsFor(ports: readonly PortConfig[], { network, node, taken }: Resources): Record<string, RunPort> {
  const fixed = new Set(ports.map(({ port }) => port))
  const numbers = Array.from({ length: 2 * ports.length }, (_, index) => LOBBY_PORTS.min + index)
  const free = network === null ? taken : numbers.filter((number) => !fixed.has(number))
  const made: Record<string, RunPort> = {}
  for (const [index, { name, protocol, port, proxy_protocol, admission, ...item }] of ports.entries()) {
    const require_player_token = item.require_player_token || admission?.by.includes('handshake') === true
    const options = {
      ...(proxy_protocol && { proxy_protocol }),
      ...(require_player_token && { require_player_token }),
      ...(admission !== null && { admission }),
      ...(admission?.has_addresses && { player_network: network?.players ?? LOOPBACK_OF_PLAYERS }),
    }
    const hostname = network?.address ?? node?.address ?? MACHINE_HOST
    const number = node === null ? (port ?? free[index]!) : free[index]!
    made[name] = { protocol, hostname, port: number, ...options }
  }
  return made
}

/** Undefined when the region has lost the tier and its default. */
function tierOf(ctx: Context, lobby: WantedLobby, mode: GameModeConfig): RegionTier | undefined {
  const region = ctx.config.regions.find(({ name }) => name === lobby.region)
  const name = tierIn(mode, lobby.region)
  return (
    region?.tiers.find(({ tier_name_id }) => tier_name_id === name) ??
    region?.tiers.find(({ tier_name_id }) => tier_name_id === region.default_tier)
  )
}

function networkWish(mode: GameModeConfig, tier: RegionTier | undefined): NetworkWish {
  const bandwidth_mb = tier?.bandwidth ?? 0
  return {
    has_internet: mode.network === 'internet',
    bytes_per_second: bandwidth_mb * BYTES_PER_SECOND_PER_MB_PER_HOUR,
  }
}

/** Writes the row of a lobby that cannot be started, with its end, and the reason into the lobby's log. */
export async function recordFailedStart(
  { ctx, driver }: Pick<Launch, 'ctx' | 'driver'>,
  lobby: WantedLobby,
  reason: ExitReason,
  message: string,
): Promise<null> {
  const node_id = lobby.node_id ?? nodeIdOf({ ctx, driver }, null)
  if (!(await insertRun(ctx, lobby, driver.name, { node_id, ports: {}, build_id: null, ready_check: null })))
    return null
  driver.note(lobby.lobby_id, message)
  await recordExit(ctx, lobby.lobby_id, neverRan(reason), [message])
  return null
}

function needsNetwork({ name, port }: PortConfig): string {
  const variable = `PORT_${variableOfPort(name)}`
  return `The port ${name} has the number ${port}, and the lobbies of this machine share its network. Leave the number out and let the server listen on ${variable}, or run lobbies with networks of their own.`
}

/** Cores and memory are those that the lobby was given when it was decided. */
function limitsOf({ cpu_cores, memory_mb }: WantedLobby, tier: RegionTier | undefined): Tier {
  const disk_bytes = Math.max(DISK_BYTES_MIN, (tier?.disk ?? 0) * 1024 ** 2)
  return { cpu_cores, memory_bytes: memory_mb * 1024 ** 2, pids_max: PIDS_MAX, tmp_bytes: TMP_BYTES, disk_bytes }
}

/** Null for a game mode without a build. */
export function buildOf(lobby: WantedLobby): BuildSource | null {
  const mode = modeOf(lobby)
  return mode === undefined ? null : sourceOf(mode)
}

/** The build of a game mode; null: it has none. */
export function sourceOf(mode: GameModeConfig): BuildSource | null {
  const build_id = buildIdOf(mode)
  return build_id === null ? null : { build_id, user: mode.image.user, registry_image: mode.registry_image }
}

function buildIdOf({ image_id, registry_image }: GameModeConfig): string | null {
  return registry_image === null ? image_id : registryBuildId(registry_image)
}

/** The numbers that the run has of the machine's network, or of that of its node, each with its pool. */
export function portsOf({ driver, ports }: Launch, run: Pick<Run, 'ports'>): { pool: Ports; port: number }[] {
  return Object.values(run.ports).flatMap(({ hostname, port }) => {
    const pool = hostname === MACHINE_HOST ? ports : (driver.nodes?.portsAt(hostname) ?? null)
    return pool === null ? [] : { pool, port }
  })
}

function modeOf(lobby: WantedLobby): GameModeConfig | undefined {
  return lobby.config === null ? undefined : gameModesOf(lobby.config).get(lobby.game_mode)
}

function release({ driver }: Launch, { network, pool, taken }: Resources): null {
  for (const port of taken) pool.release(port)
  driver.releaseNetwork(network)
  return null
}
