// The address plan of lobby networks. A platform owns one block of the operator's range. The first addresses of a block
// belong to the machine: SERVICES is where lobbies reach the platform and DNS, EDGE is the source of the machine's own
// connections to lobbies. The last quarter belongs to the machine too: players appear under these addresses to servers that
// want one for each player. Each lobby has one of the others.
//
// The number of a block is its first address divided by its size, so two platforms on one machine never share a block,
// whatever their ranges are. The names of interfaces and namespaces contain this number.
import { hash } from 'node:crypto'
import { addressOfNumber } from '@musterhost/contract/edge'
import { type AddressBlock, BLOCK_BITS } from '../../config/lobby-network.ts'

/** Addresses of one block. */
const BLOCK_SIZE = 2 ** (32 - BLOCK_BITS)
const SERVICES = 1
const EDGE = 2
const FIRST_LOBBY = 3
const PLAYERS_BITS = BLOCK_BITS + 2
const FIRST_PLAYER = BLOCK_SIZE - 2 ** (32 - PLAYERS_BITS)
/** Networks of one platform at once. */
export const NETWORKS_MAX = FIRST_PLAYER - FIRST_LOBBY

export type Block = {
  number: number
  /** Distinguishes the platform's namespaces, whose names are unique on the whole machine. */
  owner: string
  /** The interface that holds the machine's addresses. */
  interface: string
  /** Where lobbies reach the platform and DNS. */
  services: string
  /** The source address of connections from this machine to lobbies. */
  edge: string
  /** Source addresses of connections for players that have an address of their own. */
  players: string
  cidr: string
}

export type NetworkNames = {
  index: number
  namespace: string
  /** The machine's end of the pair. */
  interface: string
  address: string
}

export const blocksIn = ({ bits }: AddressBlock): number => 2 ** (BLOCK_BITS - bits)

export function blockIn({ first }: AddressBlock, position: number, owner: string): Block {
  return blockOf(first / BLOCK_SIZE + position, owner)
}

export function blockOf(number: number, owner: string): Block {
  const first = number * BLOCK_SIZE
  return {
    number,
    owner,
    interface: `${MACHINE_PREFIX}${number.toString(36)}`,
    services: addressOfNumber(first + SERVICES),
    edge: addressOfNumber(first + EDGE),
    players: `${addressOfNumber(first + FIRST_PLAYER)}/${PLAYERS_BITS}`,
    cidr: `${addressOfNumber(first)}/${BLOCK_BITS}`,
  }
}

/** Begins the names of the interfaces that hold machines' addresses. */
export const MACHINE_PREFIX = 'mst'
/** Begins the names of all lobbies' interfaces, of every platform on the machine. */
export const LOBBY_PREFIX = 'mv'

export const lobbyPrefix = ({ number }: Block): string => `${LOBBY_PREFIX}${number.toString(36)}x`
export const namespacePrefix = ({ owner }: Block): string => `muster-${owner}-`

/** Null: the namespace is not that of a lobby. */
export const ownerOfNamespace = (name: string): string | null => /^muster-([0-9a-f]+)-\d+$/.exec(name)?.[1] ?? null

export function namesOf(block: Block, index: number): NetworkNames {
  return {
    index,
    namespace: `${namespacePrefix(block)}${index}`,
    interface: `${lobbyPrefix(block)}${index}`,
    address: addressOfNumber(block.number * BLOCK_SIZE + FIRST_LOBBY + index),
  }
}

/** The number at the end of a name with this prefix; null for another name. */
export function indexIn(name: string, prefix: string): number | null {
  const digits = name.startsWith(prefix) ? name.slice(prefix.length) : ''
  return /^\d{1,5}$/.test(digits) ? Number(digits) : null
}

/** Begins the names of all platforms' tables of nftables. */
export const TABLE_PREFIX = 'muster_'

/** The platform's table of nftables. */
export const tableOf = (data_dir: string): string => `${TABLE_PREFIX}${hash('sha256', data_dir).slice(0, 16)}`

/** Whether an address or a network is inside a block, or contains it. */
export function overlaps(block: Block, first: number, bits: number): boolean {
  const size = 2 ** (32 - bits)
  const start = block.number * BLOCK_SIZE
  return first < start + BLOCK_SIZE && start < first + size
}
