// The error MATCHMAKER_REGION_FULL: which resource of a region is used up, and which setting changes it.
import { ApiError } from '@muster/contract'
import { type Capacity, fits, type RegionUse } from './capacity.ts'

/** On a full platform a lobby ends every few seconds. */
const RETRY_AFTER_S = 5

/** `wanted`: what the refused lobby would use. */
export function regionFull(capacity: Pick<Capacity, 'account' | 'isClosed'>, wanted: RegionUse): ApiError {
  const { region, cpu_cores, memory_mb } = wanted
  const begin = `The region ${region} has no room for another lobby`
  if (capacity.isClosed(region)) {
    const setting = 'MUSTER_LOBBY_DISK_FREE_MB_MIN'
    const message = `${begin}: too little is free on the disk of its runners. Free some, or lower ${setting}.`
    return refuse({ region, reason: 'disk_full', setting }, message)
  }
  const { used, limit } = capacity.account(region)
  if (fits(used.memory_mb + memory_mb, limit.memory_mb)) {
    const setting = 'MUSTER_CAPACITY_CORES'
    const account = `its lobbies use ${round(used.cpu_cores)} of ${limit.cpu_cores} cores, and this one takes ${round(cpu_cores)}`
    const message = `${begin}: ${account}. ${setting}, or cores of the region in muster.toml, sets the limit.`
    return refuse({ region, reason: 'cores_full', setting }, message)
  }
  const setting = 'MUSTER_CAPACITY_MEMORY_MB'
  const account = `its lobbies use ${used.memory_mb} of ${limit.memory_mb} MB of memory, and this one takes ${memory_mb}`
  const message = `${begin}: ${account}. ${setting}, or memory_mb of the region in muster.toml, sets the limit.`
  return refuse({ region, reason: 'memory_full', setting }, message)
}

function refuse(metadata: { region: string; reason: string; setting: string }, message: string): ApiError {
  return new ApiError('MATCHMAKER_REGION_FULL', metadata, { message, retry_after_s: RETRY_AFTER_S })
}

/** Sums of thirds have many digits. */
function round(cores: number): number {
  return Number(cores.toFixed(3))
}
