// The data folder, its disk and the sandbox of lobbies.
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { DISK_LOW_FACTOR, freeBytes } from '../observe/disk.ts'
import { createLog } from '../observe/log.ts'
import { EngineClient } from '../runner/drivers/docker/engine.ts'
import { imageOf } from '../runner/drivers/docker/host.ts'
import { prepareHost } from '../runner/drivers/process/host.ts'
import type { EngineNode } from '../runner/drivers/swarm/engine-node.ts'
import { heartbeatRemedy, openNodes, SHORT_HEARTBEAT } from '../runner/drivers/swarm/host.ts'
import { Managers } from '../runner/drivers/swarm/managers.ts'
import { NO_FREE_BLOCK } from '../runner/network/claim.ts'
import { networkOptions } from '../runner/network/options.ts'
import { requireFinishedRestore } from '../supervisor/folders.ts'
import { type Finding, failed, ok, skipped, warning } from './finding.ts'

/** As the settings count them. */
const MB = 1_000_000
/** Managers of which one may be lost. */
const MANAGERS_MIN = 3
/** Folders above the data folder that are checked. */
const PARENTS_MAX = 64

export async function examineDataFolder({ data_dir }: Config): Promise<Finding[]> {
  try {
    requireFinishedRestore(data_dir)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return [failed('data folder', error.message, 'muster restore FOLDER')]
  }
  const folder = existingFolder(data_dir)
  const remedy = `export MUSTER_DATA=/var/lib/muster    (a folder that this user may write)`
  if (!statSync(folder).isDirectory()) return [failed('data folder', `${folder} is a file.`, remedy)]
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return [failed('data folder', `${folder} cannot be written (${code}).`, remedy)]
  }
  return [ok('data folder', existsSync(data_dir) ? data_dir : `${data_dir} will be made`)]
}

export async function examineDisk({ data_dir, uploads, lobbies }: Config): Promise<Finding[]> {
  const free = await freeBytes(existingFolder(data_dir))
  const size = `${Math.floor(free / MB)} MB are free at ${data_dir}`
  const remedy = `du -xh --max-depth=2 ${existingFolder(data_dir)} | sort -h | tail`
  const limits = [
    { bytes: uploads.disk_free_bytes_min, what: 'Uploads are refused', setting: 'MUSTER_UPLOAD_DISK_FREE_MB_MIN' },
    { bytes: lobbies.disk_free_bytes_min, what: 'No lobby starts', setting: 'MUSTER_LOBBY_DISK_FREE_MB_MIN' },
  ]
  const findings = limits
    .filter(({ bytes }) => free < bytes * DISK_LOW_FACTOR)
    .map(({ bytes, what, setting }) => {
      const report = free < bytes ? failed : warning
      return report('disk', `${what} below ${bytes / MB} MB (${setting}), and ${size}.`, remedy)
    })
  return findings.length > 0 ? findings : [ok('disk', size)]
}

const SANDBOX_WORKS = 'bubblewrap, control groups, networks and disks of lobbies work'

/**
 * Runs a program under bubblewrap, as the runner does at its start, with a folder of its own. Beside a platform that runs,
 * that platform may have the only block of addresses, which shows that its networks work.
 */
export async function examineSandbox(config: Config, is_running: boolean): Promise<Finding[]> {
  const { data_dir, sandbox, roles, driver, docker } = config
  if (!roles.includes('runner')) return [skipped('sandbox', 'this machine runs no lobbies')]
  if (driver === 'docker') return [await examineEngine(docker)]
  if (driver === 'swarm') return examineSwarm(config)
  const parent = existingFolder(data_dir)
  const warnings: { msg: string; reason?: string; remedy?: string }[] = []
  const log = createLog({ who: 'doctor', level: 'warn', to: { write: (line) => void warnings.push(JSON.parse(line)) } })
  let folder: string
  try {
    folder = mkdtempSync(join(parent, '.muster-doctor-'))
  } catch (error) {
    return [skipped('sandbox', `no trial folder can be made in ${parent} (${(error as NodeJS.ErrnoException).code})`)]
  }
  try {
    // The users of lobbies must be able to enter it.
    chmodSync(folder, 0o711)
    const network = networkOptions(config)
    const host = await prepareHost({ data_dir: folder, sandbox, log, network })
    host.cgroups?.close()
    await host.networks?.remove()
    const others = warnings.filter(({ reason }) => !(is_running && reason === NO_FREE_BLOCK))
    const found = others.map(({ msg, reason, remedy = sandboxRemedy(`${msg} ${reason}`, parent) }) =>
      warning('sandbox', reason === undefined ? msg : `${msg}: ${reason}`, remedy),
    )
    return found.length > 0 ? found : [ok('sandbox', SANDBOX_WORKS)]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    if (is_running && error.message.includes(NO_FREE_BLOCK)) return [ok('sandbox', SANDBOX_WORKS)]
    return [failed('sandbox', error.message, sandboxRemedy(error.message, parent))]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether each engine of the Swarm responds, and a manager takes requests. */
async function examineSwarm({ swarm, node_grace_ms }: Config): Promise<Finding[]> {
  let nodes: EngineNode[] = []
  try {
    nodes = openNodes(swarm, 'muster-doctor', () => 0)
    const managers = new Managers(nodes)
    await Promise.all(nodes.map((node) => node.check()))
    const remedy = 'systemctl start docker on that machine, or correct MUSTER_SWARM_ENGINES    (docs/containers.md)'
    const away = nodes.flatMap(({ node_id, failure }) =>
      failure === null
        ? []
        : failed('sandbox', `the engine of the node ${node_id} does not respond: ${failure}`, remedy),
    )
    await managers.check()
    const found = [...away, ...(await examineManagers(nodes, managers, node_grace_ms))]
    if (found.length > 0) return found
    const names = nodes
      .map(({ node_id, facts }) => `${node_id} (${facts?.is_manager ? 'manager' : 'worker'})`)
      .join(', ')
    return [ok('sandbox', `all engines of the Swarm respond, and a manager takes requests: ${names}`)]
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return [failed('sandbox', reason, 'docker node ls on a manager    (docs/containers.md)')]
  } finally {
    for (const node of nodes) node.close()
  }
}

/** Whether a manager takes requests, each machine gets lobbies, and the loss of one manager is survived. */
async function examineManagers(
  nodes: readonly EngineNode[],
  managers: Managers,
  node_grace_ms: number,
): Promise<Finding[]> {
  const list = 'docker node ls on a manager    (docs/containers.md)'
  if (!managers.are_here) return [failed('sandbox', managers.failure ?? 'no manager takes requests', list)]
  const findings: Finding[] = []
  for (const { node_id, facts, is_here } of nodes) {
    const machine = facts === null ? null : managers.machine(facts.swarm_id)
    if (!is_here || (machine?.is_ready === true && machine.is_active)) continue
    const remedy = `docker node update --availability active NODE    (${list})`
    findings.push(warning('sandbox', `the Swarm starts nothing on the node ${node_id}`, remedy))
  }
  const command = await heartbeatRemedy(managers, node_grace_ms)
  if (command !== null) findings.push(warning('sandbox', SHORT_HEARTBEAT, command))
  const count = managers.managerCount()
  if (nodes.length >= MANAGERS_MIN && count < MANAGERS_MIN) {
    const text = `the Swarm has ${count} of at least ${MANAGERS_MIN} managers: without a majority of them no lobby starts`
    findings.push(warning('sandbox', text, 'docker node promote NODE NODE'))
  }
  return findings
}

/** Whether the container engine responds, and has the base image. */
async function examineEngine({ socket, base_image }: Config['docker']): Promise<Finding> {
  const engine = new EngineClient(socket)
  try {
    await engine.call('GET', '/version')
    const image = await imageOf({ engine, base_image })
    if (!('refused' in image)) return ok('sandbox', `the container engine on ${socket} responds and has ${base_image}`)
    const remedy = `docker pull IMAGE && export MUSTER_DOCKER_BASE_IMAGE=IMAGE    (docs/containers.md)`
    return warning('sandbox', image.message, remedy)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const remedy = 'systemctl start docker, or export MUSTER_DOCKER_SOCKET=PATH'
    return failed('sandbox', `the container engine does not respond on ${socket}: ${reason}`, remedy)
  } finally {
    engine.close()
  }
}

function sandboxRemedy(message: string, folder: string): string {
  if (message.includes('MUSTER_SANDBOX=off')) return 'unset MUSTER_SANDBOX'
  if (message.includes('Linux')) return 'export MUSTER_ROLES=api,matchmaker,edge    (and a runner on a Linux machine)'
  if (message.startsWith('setpriv (of')) return 'sudo apt-get install util-linux'
  if (message.includes(NO_FREE_BLOCK)) {
    return 'export MUSTER_LOBBY_NETWORK=10.200.0.0/16    (or another private range that this machine does not use)'
  }
  if (message.includes('network of this machine') || message.includes('network for each lobby')) {
    return 'sudo apt-get install iproute2 nftables && sudo muster start    (or MUSTER_LOBBY_NETWORK=machine for trusted builds)'
  }
  if (message.includes('no disk')) return 'sudo apt-get install e2fsprogs && sudo modprobe loop && sudo muster start'
  if (message.includes('limits'))
    return 'run the platform as root, or under systemd with Delegate=yes (docs/deploying.md)'
  if (/source path .*Permission denied/.test(message)) return `chmod o+x ${folder}    (and the folders above it)`
  return 'sudo apt-get install bubblewrap && bwrap --unshare-user --ro-bind / / true'
}

/** The folder itself, or the nearest one above it that exists. */
function existingFolder(path: string): string {
  let folder = path
  for (let parents = 0; parents < PARENTS_MAX && !existsSync(folder); parents++) folder = dirname(folder)
  return folder
}
