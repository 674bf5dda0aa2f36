// Where lobbies run, and in which sizes: from the file muster.toml, or, without one, one region made of this machine.
// A tier's name has one meaning on the whole platform; a region has some of the tiers. It may have a capacity, which is what
// all lobbies in it may use together, on all of its nodes.
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import Type, { type Static } from 'typebox'
import { positionText } from '../text/text-position.ts'
import { parseToml, type Toml, TomlSyntaxError } from '../text/toml.ts'

/** Tier with the members of the response to GET /cloud/region-tiers, in their order. */
export type RegionTier = {
  tier_name_id: string
  platform_cores_numerator: number
  platform_cores_denominator: number
  /** MHz. */
  cpu: number
  /** Memory, disk and bandwidth are in MB. */
  memory: number
  disk: number
  bandwidth: number
}

/** Cores and MiB that lobbies may use together; null: no limit. */
export type RoomLimit = { cpu_cores: number | null; memory_mb: number | null }

export const PLACEMENTS = ['spread', 'pack'] as const
export type Placement = (typeof PLACEMENTS)[number]

/** A place where lobbies run. The name is what matchmaker answers call region_id. */
export type Region = {
  name: string
  display_name: string
  provider_display_name: string
  latitude: number
  longitude: number
  driver: 'process'
  tiers: readonly RegionTier[]
  /** The tier of game modes that name none. */
  default_tier: string
  /** What the lobbies of the region may use together, on all nodes. Null: as much as its nodes have. */
  capacity: RoomLimit
  /** Whether muster.toml says how many cores, and how much memory, the region has; 0 there stands for no limit. */
  is_stated: { cpu_cores: boolean; memory_mb: boolean }
  /** Which node gets a new lobby: `spread`: the one with most room; `pack`: the fullest that has room. */
  placement: Placement
  /** Millionths of the currency, for an hour of one core; null: it is not charged for. */
  price_micros_per_core_hour: number | null
}

/** `currency` is that of all prices, ISO 4217; null: there are none. */
export type Regions = { regions: readonly Region[]; tiers: readonly RegionTier[]; currency: string | null }

export type MachineSize = { cores: number; memory_mb: number; cpu_mhz: number }

const NAME_ID = '^[a-z0-9]+(-[a-z0-9]+)*$'
const Name = Type.String({ pattern: NAME_ID, maxLength: 16 })
const Text = Type.String({ minLength: 1, maxLength: 64 })
const Count = Type.Integer({ minimum: 0, maximum: 2_147_483_647 })
/** The largest numerator and denominator of a tier's cores. */
export const PORTION_MAX = 1024
const Portion = Type.Integer({ minimum: 1, maximum: PORTION_MAX })
const strict = { additionalProperties: false } as const

const TierTable = Type.Object(
  {
    tier_name_id: Name,
    platform_cores_numerator: Portion,
    platform_cores_denominator: Portion,
    memory: Type.Integer({ minimum: 16, maximum: 2_147_483_647 }),
    cpu: Type.Optional(Count),
    disk: Type.Optional(Count),
    bandwidth: Type.Optional(Count),
  },
  strict,
)
const RegionTable = Type.Object(
  {
    name: Name,
    display_name: Text,
    provider_display_name: Type.Optional(Text),
    latitude: Type.Number({ minimum: -90, maximum: 90 }),
    longitude: Type.Number({ minimum: -180, maximum: 180 }),
    driver: Type.Optional(Type.Literal('process')),
    tiers: Type.Optional(Type.Array(Name, { minItems: 1, maxItems: 64 })),
    default_tier: Type.Optional(Name),
    cores: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
    memory_mb: Type.Optional(Count),
    placement: Type.Optional(Type.Enum([...PLACEMENTS])),
    price_per_core_hour: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
  },
  strict,
)
const RegionsFile = Type.Object(
  {
    tiers: Type.Optional(Type.Array(TierTable, { minItems: 1, maxItems: 64 })),
    regions: Type.Optional(Type.Array(RegionTable, { minItems: 1, maxItems: 64 })),
    currency: Type.Optional(Type.String({ pattern: '^[A-Z]{3}$' })),
  },
  strict,
)
type RegionsFile = Static<typeof RegionsFile>

const DEFAULT_TIER = 'basic-1d1'
/** The tiers that there are by default, the largest first. */
const PORTIONS = [
  [4, 1],
  [2, 1],
  [1, 1],
  [1, 2],
  [1, 4],
  [1, 8],
  [1, 16],
] as const
/** Share of the machine's memory that lobbies may use: the rest is for the platform and the operating system. */
const MEMORY_FOR_LOBBIES = 0.9
/** Disk of a tier with one whole core, for the comparison of tiers. Disk and bandwidth are not enforced. */
const DISK_MB_PER_CORE = 40_960
const BANDWIDTH_MB_PER_CORE = 750_000
const MICROS = 1_000_000
/** Clock rate of a machine that does not report one, in MHz. */
const CPU_MHZ_ELSEWHERE = 2_000
/** Bytes of `muster.toml`. */
const FILE_BYTES_MAX = 1024 * 1024

export function thisMachine(): MachineSize {
  const memory_bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return {
    cores: availableParallelism(),
    memory_mb: Math.floor(memory_bytes / 1024 ** 2),
    cpu_mhz: cpus()[0]?.speed || CPU_MHZ_ELSEWHERE,
  }
}

/**
 * Reads the file at `path`; null: there is none. `placement` is that of regions that do not say one. What is wrong with it
 * is added to `mistakes`, a sentence each.
 */
export function readRegions(
  path: string | null,
  placement: Placement,
  machine: MachineSize,
  mistakes: string[],
): Regions {
  const file = path === null ? {} : readFile(path, mistakes)
  const tiers = file.tiers === undefined ? machineTiers(machine) : file.tiers.map((tier) => fillIn(tier, machine))
  const names = new Set(tiers.map((tier) => tier.tier_name_id))
  if (names.size < tiers.length) mistakes.push(`${path}: two tiers have the same tier_name_id.`)
  const tables = file.regions ?? [LOCAL]
  if (new Set(tables.map((table) => table.name)).size < tables.length) {
    mistakes.push(`${path}: two regions have the same name.`)
  }
  const is_priced = tables.some(({ price_per_core_hour }) => price_per_core_hour !== undefined)
  if (is_priced && file.currency === undefined) mistakes.push(`${path}: there are prices, and no currency.`)
  return {
    tiers,
    currency: is_priced ? (file.currency ?? null) : null,
    regions: tables.map((table) => regionOf(table, tiers, placement, (fault) => mistakes.push(`${path}: ${fault}`))),
  }
}

const LOCAL: Static<typeof RegionTable> = {
  name: 'local',
  display_name: 'Local',
  provider_display_name: 'This machine',
  latitude: 0,
  longitude: 0,
}

function readFile(path: string, mistakes: string[]): RegionsFile {
  let toml: Toml
  try {
    const bytes = readFileSync(path)
    if (bytes.length > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`)
    toml = parseToml(bytes.toString('utf8'))
  } catch (error) {
    const place = error instanceof TomlSyntaxError ? positionText(error.position) : ''
    mistakes.push(`${path} cannot be read: ${(error as Error).message}${place}.`)
    return {}
  }
  const faults = checkFile(toml.value)
  for (const fault of faults) mistakes.push(`${path}${positionText(toml.positionOf(fault.path))}: ${fault.message}`)
  return faults.length === 0 ? (toml.value as RegionsFile) : {}
}

const checkFile = createShapeCheck(RegionsFile)

function regionOf(
  table: Static<typeof RegionTable>,
  all: readonly RegionTier[],
  placement: Placement,
  complain: (fault: string) => void,
): Region {
  const { name, display_name, latitude, longitude } = table
  for (const tier of table.tiers ?? []) {
    if (!all.some((known) => known.tier_name_id === tier)) complain(`region ${name} has a tier ${tier}, which is none.`)
  }
  const tiers = all.filter((tier) => table.tiers?.includes(tier.tier_name_id) ?? true)
  const named = tiers.find((tier) => tier.tier_name_id === (table.default_tier ?? DEFAULT_TIER))
  if (table.default_tier !== undefined && named === undefined) {
    complain(`region ${name} has no tier ${table.default_tier} to be its default_tier.`)
  }
  const default_tier = (named ?? tiers[0])?.tier_name_id ?? DEFAULT_TIER
  return {
    name,
    display_name,
    provider_display_name: table.provider_display_name ?? display_name,
    latitude,
    longitude,
    driver: table.driver ?? 'process',
    tiers,
    default_tier,
    capacity: { cpu_cores: table.cores || null, memory_mb: table.memory_mb || null },
    is_stated: { cpu_cores: table.cores !== undefined, memory_mb: table.memory_mb !== undefined },
    placement: table.placement ?? placement,
    price_micros_per_core_hour: microsOf(table.price_per_core_hour, (fault) => complain(`region ${name} ${fault}`)),
  }
}

/** As it was written: a price has decimals, which doubles have not. */
function microsOf(price: number | undefined, complain: (fault: string) => void): number | null {
  if (price === undefined) return null
  const micros = Math.round(price * MICROS)
  if (micros / MICROS !== price) complain('has a price with more than six decimals.')
  return micros
}

/** The whole cores are the machine's; none is larger than it. */
function machineTiers(machine: MachineSize): RegionTier[] {
  return PORTIONS.filter(([numerator, denominator]) => numerator / denominator <= machine.cores).map(
    ([numerator, denominator]) => {
      const cores = numerator / denominator
      const memory = Math.floor((machine.memory_mb * MEMORY_FOR_LOBBIES * cores) / machine.cores)
      const tier = { platform_cores_numerator: numerator, platform_cores_denominator: denominator, memory }
      return fillIn({ tier_name_id: `basic-${numerator}d${denominator}`, ...tier }, machine)
    },
  )
}

function fillIn(table: Static<typeof TierTable>, machine: MachineSize): RegionTier {
  const { tier_name_id, platform_cores_numerator, platform_cores_denominator, memory } = table
  const cores = platform_cores_numerator / platform_cores_denominator
  return {
    tier_name_id,
    platform_cores_numerator,
    platform_cores_denominator,
    cpu: table.cpu ?? Math.floor(machine.cpu_mhz * cores),
    memory,
    disk: table.disk ?? Math.floor(DISK_MB_PER_CORE * cores),
    bandwidth: table.bandwidth ?? Math.floor(BANDWIDTH_MB_PER_CORE * cores),
  }
}

/** What the lobbies of a machine may use together, unless a setting says otherwise. */
export function machineCapacity(machine: MachineSize): { cpu_cores: number; memory_mb: number } {
  return { cpu_cores: machine.cores, memory_mb: Math.floor(machine.memory_mb * MEMORY_FOR_LOBBIES) }
}
