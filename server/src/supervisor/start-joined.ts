// Starts a machine that joins, or has joined, a platform, step by step: lock the data folder, use up the invitation, open the
// link, take over the platform's settings, start the roles of the node. Database, stored files and keys stay at the platform.
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { readConfig } from '../config/read-config.ts'
import type { Role } from '../config/roles.ts'
import { StartError } from '../config/start-error.ts'
import { openSocketFolder } from '../database/embedded/socket-folder.ts'
import { joinPlatform } from '../links/node/join-platform.ts'
import { type LocalSockets, openLocalSockets } from '../links/node/local-sockets.ts'
import { type NodeFile, readNodeFile, writeNodeFile } from '../links/node/node-file.ts'
import { NodeLink } from '../links/node/node-link.ts'
import {
  DatabaseResponse,
  HelloResponse,
  LINK_VERSION,
  SHARED_GIVEN_SETTINGS,
  SHARED_SETTINGS,
} from '../links/protocol.ts'
import { call, LinkRefusal } from '../links/streams.ts'
import { createLog } from '../observe/log.ts'
import { credentialsOf } from '../observe/redact.ts'
import { thisProgram } from '../wire/compatibility.ts'
import { platformVersion } from '../wire/platform-version.ts'
import { roleEnvironment } from './environment.ts'
import { adminFile } from './folders.ts'
import { chooseEdgePorts } from './ports.ts'
import { openRoleLog } from './role-log.ts'
import { inStep, type Start, startRoleProcesses, takeFolder } from './start-platform.ts'
import type { Running } from './upgrade/replace-program.ts'

/** What `muster join` was given. */
export type JoinInvitation = { url: string; invitation: string }

const REGIONS_FILE = 'platform.toml'
const SOCKETS_FILE = 'link-folder'
const BYTES_PER_GB = 1024 ** 3

/** `request`: null starts a machine that has joined before. Throws at the first step that fails. */
export async function startJoined(start: Start, request: JoinInvitation | null): Promise<Running> {
  const { terminal, config, signal } = start
  const { data_dir } = config
  if (request !== null) requireNoPlatform(data_dir)
  const lock = await inStep(
    terminal,
    'data folder',
    () => takeFolder(start),
    () => data_dir,
  )
  const file = request === null ? readNodeFile(data_dir)! : await joinOnce(start, request)
  signal.throwIfAborted()
  const sockets_file = join(data_dir, 'keys', SOCKETS_FILE)
  const opened = await inStep(
    terminal,
    'link',
    async () => openLink(start, file, await openSocketFolder(null, sockets_file)),
    ({ hello }) => `${hello.version}; nothing has to be opened on this machine`,
  )
  signal.throwIfAborted()
  const has_edge = opened.hello.roles.includes('edge')
  const ports = has_edge ? (await chooseEdgePorts(config, start.env)).settings : {}
  const resolved = { ...ports, ...nodeSettings(data_dir, file, opened.hello), ...linkSettings(opened) }
  // All mistakes are reported in one sentence, before a role starts.
  const node_config = readConfig({ ...start.env, ...resolved })
  const env = roleEnvironment(start.env, node_config, resolved)
  const detailOf = (role: Role, address: string | null): string => (role === 'runner' ? machineText() : (address ?? ''))
  const options = { env, lock, isQuiet: () => false, detailOf }
  await startRoleProcesses({ ...start, config: node_config }, options)
  const settings = [
    ['node', file.node_id, `region ${file.region}`],
    ['platform', file.platform_url],
    ['data folder', data_dir],
  ] as const
  terminal.table(settings)
  const platformVersion = (): Promise<string> => askVersion(start, opened.link)
  const { log } = opened
  return { lock, log, program: thisProgram(), settings: {}, has_joined: true, refusal: null, platformVersion }
}

async function askVersion({ now }: Start, link: NodeLink): Promise<string> {
  const session = link.calls()
  if (session === null) throw new StartError('The link to the platform is down. Try again when it is open.')
  const hello = { link_version: LINK_VERSION, version: platformVersion(), now_ms: now() }
  return (await call(session, '/hello', hello, HelloResponse)).version
}

function requireNoPlatform(data_dir: string): void {
  if (!existsSync(adminFile(data_dir))) return
  throw new StartError(
    `${data_dir} has a platform of its own. Set MUSTER_DATA to an empty folder for the node that joins another one.`,
  )
}

async function joinOnce({ config, terminal }: Start, { url, invitation }: JoinInvitation): Promise<NodeFile> {
  const step = terminal.step('platform')
  try {
    const file = await joinPlatform({
      url,
      invitation,
      version: platformVersion(),
      onVerified: () => step.done(`${new URL(url).host} is the platform of the invitation`),
    })
    writeNodeFile(config.data_dir, file)
    terminal.step('invitation').done(`this machine is ${file.node_id} in region ${file.region}`)
    return file
  } catch (error) {
    step.failed()
    throw error
  }
}

type OpenedLink = {
  log: Logger
  link: NodeLink
  hello: HelloResponse
  database: DatabaseResponse
  sockets: LocalSockets
}

async function openLink(start: Start, file: NodeFile, folder: string): Promise<OpenedLink> {
  const { config, parts, terminal, now, signal, stop } = start
  const { data_dir } = config
  const own_log = openRoleLog({ folder: join(data_dir, 'logs'), who: 'supervisor', terminal, elapsed: start.elapsed })
  parts.push({ stop: () => own_log.close() })
  const to = { write: (line: string) => own_log.write(line.trimEnd()) }
  const log = createLog({ who: 'supervisor', level: config.log_level, secrets: credentialsOf(config), to })
  const link = new NodeLink({
    ...{ data_dir, file, log, now, version: platformVersion() },
    targets: { network: config.lobby_network },
    onRemoved(reason) {
      terminal.warn('link', reason)
      stop({ end_lobbies: true })
    },
  })
  parts.push({ stop: () => link.close() })
  const abort = (): void => void link.close()
  signal.addEventListener('abort', abort, { once: true })
  try {
    const hello = await link.hello()
    const sockets = await openLocalSockets({
      folder,
      lobby_api: { host: config.internal_host, port: config.lobby_api_port },
      calls: () => link.calls(),
      edge: () => link.edge(),
    })
    parts.push({ stop: () => sockets.close() })
    const session = link.calls()
    if (session === null) throw new StartError('The link was lost while this machine started. Start it again.')
    return { log, link, hello, sockets, database: await call(session, '/database', {}, DatabaseResponse) }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof LinkRefusal) throw new StartError(error.message, { cause: error })
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The settings of the platform, and the file of its regions. */
function nodeSettings(data_dir: string, { node_id }: NodeFile, hello: HelloResponse): Record<string, string> {
  const path = join(data_dir, REGIONS_FILE)
  const shared = [...SHARED_SETTINGS, ...SHARED_GIVEN_SETTINGS].flatMap((name) => {
    const value = hello.settings[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  if (hello.regions === null) rmSync(path, { force: true })
  else writeFileSync(path, hello.regions, { mode: 0o600 })
  return {
    ...Object.fromEntries(shared),
    ...(hello.regions !== null && { MUSTER_CONFIG: path }),
    MUSTER_NODE: node_id,
    MUSTER_ROLES: hello.roles.join(),
    MUSTER_RUNNER_REGIONS: hello.region,
  }
}

function linkSettings({ database: { user, password, database }, sockets }: OpenedLink): Record<string, string> {
  const folder = encodeURIComponent(sockets.database_folder)
  return {
    DATABASE_URL: `postgres://${user}:${password}@/${database}?host=${folder}`,
    MUSTER_LINK: sockets.platform_path,
  }
}

function machineText(): string {
  return `${availableParallelism()} cores, ${Math.round(totalmem() / BYTES_PER_GB)} GB`
}
