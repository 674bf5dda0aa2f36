// The error MATCHMAKER_REGION_FULL: which resource of a region is used up, and which setting changes it.
import { ApiError } from '@musterhost/contract'
import { type Capacity, fits, hasRoom, type NodeRoom, type NodeState } from './capacity.ts'
import type { RegionUse } from './room-claims.ts'

/** On a full platform a lobby ends every few seconds. */
const RETRY_AFTER_S = 5

const DISK_SETTING = 'MUSTER_LOBBY_DISK_FREE_MB_MIN'
const BY_STATE: Record<Exclude<NodeState, 'open' | 'away'>, { setting: string; message: string }> = {
  disk_full: {
    setting: DISK_SETTING,
    message: `too little is free on the disk of its runners. Free some, or lower ${DISK_SETTING}.`,
  },
  draining: {
    setting: 'nodes',
    message:
      'its nodes are being drained. "muster nodes" lists them, and "muster nodes drain NODE --cancel" ends that.',
  },
  no_manager: {
    setting: 'MUSTER_SWARM_ENGINES',
    message:
      'its nodes are machines of a Docker Swarm, and no manager of it takes requests. Lobbies that run continue. "muster doctor" on the machine of the runner says why.',
  },
  not_available: {
    setting: 'nodes',
    message:
      'its nodes are machines that their Docker Swarm does not use: paused, drained or missed. "docker node ls" on a manager lists them.',
  },
  ports_full: { setting: 'nodes', message: 'its nodes have no free local ports. Add a node.' },
}

/** `wanted`: what the refused lobby would use. */
export function regionFull(capacity: Pick<Capacity, 'account' | 'nodesOf' | 'usedBy'>, wanted: RegionUse): ApiError {
  const { region } = wanted
  const nodes = capacity.nodesOf(region)
  const { used, limit } = capacity.account(region)
  const is_region_full = !hasRoom(used, wanted, limit)
  const taking = nodes.filter(({ state }) => state === 'open' || state === 'away')
  const begin = `The region ${region} has no room for another lobby`
  if (is_region_full || (nodes.length > 0 && taking.length > 0)) {
    const fullest = is_region_full ? { used, limit } : fullestOf(capacity, taking)
    return roomFull(begin, wanted, fullest, is_region_full ? 'region' : 'node')
  }
  const state = nodes.map((node) => node.state).find((one) => one !== 'draining') ?? 'draining'
  const { setting, message } = BY_STATE[state as keyof typeof BY_STATE]
  return regionFullError({ region, reason: state, setting }, `${begin}: ${message}`)
}

type Account = Pick<ReturnType<Capacity['account']>, 'used' | 'limit'>

/** The node with most room: what it lacks, all others lack too, or more. */
function fullestOf(capacity: Pick<Capacity, 'usedBy'>, nodes: readonly NodeRoom[]): Account {
  const accounts = nodes.map(({ node_id, limit }) => ({ used: capacity.usedBy(node_id), limit }))
  const freeCores = ({ used, limit }: Account): number =>
    limit.cpu_cores === null ? Number.POSITIVE_INFINITY : limit.cpu_cores - used.cpu_cores
  return accounts.reduce((best, one) => (freeCores(one) > freeCores(best) ? one : best))
}

function roomFull(begin: string, wanted: RegionUse, { used, limit }: Account, of: 'region' | 'node'): ApiError {
  const { region, cpu_cores, memory_mb } = wanted
  const whose = of === 'region' ? 'its lobbies use' : 'the lobbies of its emptiest node use'
  if (fits(used.memory_mb + memory_mb, limit.memory_mb)) {
    const setting = 'MUSTER_CAPACITY_CORES'
    const account = `${whose} ${round(used.cpu_cores)} of ${limit.cpu_cores} cores, and this one takes ${round(cpu_cores)}`
    const message = `${begin}: ${account}. ${setting}, or cores of the region in muster.toml, sets the limit.`
    return regionFullError({ region, reason: 'cores_full', setting }, message)
  }
  const setting = 'MUSTER_CAPACITY_MEMORY_MB'
  const account = `${whose} ${used.memory_mb} of ${limit.memory_mb} MB of memory, and this one takes ${memory_mb}`
  const message = `${begin}: ${account}. ${setting}, or memory_mb of the region in muster.toml, sets the limit.`
  return regionFullError({ region, reason: 'memory_full', setting }, message)
}

function regionFullError(metadata: { region: string; reason: string; setting: string }, message: string): ApiError {
  return new ApiError('MATCHMAKER_REGION_FULL', metadata, { message, retry_after_s: RETRY_AFTER_S })
}

/** Sums of thirds have many digits. */
function round(cores: number): number {
  return Number(cores.toFixed(3))
}
