// Claims a block of addresses for this platform: an interface whose name contains the number of the block, and whose
// hardware address is derived from the data folder. The kernel makes an interface of a name once, so a claim is atomic,
// and a new runner recognises the claim of a killed one.
import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { numberOfAddress, type Range } from '../../config/lobby-network.ts'
import { type Block, blockIn, blockOf, blocksIn, MACHINE_PREFIX, overlaps } from './addresses.ts'
import { ipBatch, run } from './system-command.ts'

/** Blocks tried for one claim. */
const TRIES_MAX = 256

type Link = { ifname: string; address?: string }
type Network = { first: number; bits: number }

/** Returns the block of this data folder, claiming one if it has none. Throws an Error that names the remedy. */
export async function claimBlock(range: Range, data_dir: string): Promise<Block> {
  const block = (await findBlock(data_dir)) ?? (await claimNew(range, macOf(data_dir), data_dir))
  // Repeated for a claim that was interrupted.
  writeFileSync(`/proc/sys/net/ipv6/conf/${block.interface}/disable_ipv6`, '1')
  // Local routes instead of addresses: when an address of the machine appears, browsers on it end their open requests.
  await ipBatch([
    `link set ${block.interface} up`,
    ...[block.services, block.edge, block.players].map(
      (network) => `route replace local ${network} dev ${block.interface} table local`,
    ),
  ])
  return block
}

/** The block that this data folder has claimed; null: none. */
export async function findBlock(data_dir: string): Promise<Block | null> {
  const mac = macOf(data_dir)
  const numbers = (await bridges()).flatMap(({ ifname, address }) => (address === mac ? (numberIn(ifname) ?? []) : []))
  return numbers[0] === undefined ? null : blockOf(numbers[0], ownerOf(data_dir))
}

export async function releaseBlock(block: Block): Promise<void> {
  await ipBatch([`link del ${block.interface}`], { is_forced: true }).catch(() => undefined)
}

async function claimNew(range: Range, mac: string, data_dir: string): Promise<Block> {
  const count = blocksIn(range)
  const start = Number.parseInt(hash('sha256', data_dir).slice(0, 8), 16)
  const networks = [...ownAddresses(), ...routes()]
  for (let tried = 0; tried < Math.min(count, TRIES_MAX); tried++) {
    const block = blockIn(range, (start + tried) % count, ownerOf(data_dir))
    if (networks.some(({ first, bits }) => overlaps(block, first, bits))) continue
    try {
      await run(['ip', 'link', 'add', 'name', block.interface, 'address', mac, 'type', 'bridge'])
      return block
    } catch (error) {
      if (!String(error).includes('File exists')) throw error
    }
  }
  throw new Error(
    'every block of MUSTER_LOBBY_NETWORK overlaps with an address or a route of this machine, or belongs to another platform; set it to another private range',
  )
}

async function bridges(): Promise<Link[]> {
  const text = await run(['ip', '-json', 'link', 'show', 'type', 'bridge'])
  const links = text.trim() === '' ? [] : (JSON.parse(text) as Link[])
  return links.filter(({ ifname }) => ifname?.startsWith(MACHINE_PREFIX))
}

function numberIn(name: string): number | null {
  const number = Number.parseInt(name.slice(MACHINE_PREFIX.length), 36)
  return Number.isInteger(number) && blockOf(number, '').interface === name ? number : null
}

const ownerOf = (data_dir: string): string => hash('sha256', data_dir).slice(0, 12)

/** A locally administered address. */
function macOf(data_dir: string): string {
  const digits = hash('sha256', data_dir).slice(0, 10)
  return ['02', ...digits.match(/../g)!].join(':')
}

function ownAddresses(): Network[] {
  const items = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
  return items
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => ({ first: numberOfAddress(address), bits: 32 }))
}

/** All IPv4 routes but the default one. The kernel prints numbers in its own byte order. */
function routes(): Network[] {
  const networks: Network[] = []
  for (const line of readFileSync('/proc/net/route', 'latin1').split('\n').slice(1)) {
    const [, destination, , , , , , mask] = line.split('\t')
    if (destination === undefined || mask === undefined || mask === '00000000') continue
    const bits = [...Number.parseInt(mask, 16).toString(2)].filter((bit) => bit === '1').length
    networks.push({ first: Buffer.from(destination, 'hex').readUInt32LE(), bits })
  }
  return networks
}
