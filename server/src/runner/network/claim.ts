// Claims a block of addresses for this platform. The kernel makes an interface of a name once, so a claim is atomic.
import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { numberOfAddress } from '@musterhost/contract/edge'
import type { AddressBlock } from '../../config/lobby-network.ts'
import { removeAbandonedBlocks } from './abandoned.ts'
import { type Block, blockIn, blocksIn, overlaps } from './addresses.ts'
import { findBlock, macOf, ownerOf } from './block.ts'
import { holdBlock, withBlockLock } from './block-holders.ts'
import { ipBatch, run } from './system-command.ts'

/** Blocks tried for one claim. */
const TRIES_MAX = 256

export const NO_FREE_BLOCK =
  'every block of MUSTER_LOBBY_NETWORK overlaps with an address or a route of this machine, or belongs to another platform; set it to another private range'

type Network = { first: number; bits: number }

/** `leave`: this process does not use the block any more. Its interface stays. */
export type BlockClaim = { block: Block; leave: () => Promise<void> }

/** The block of this data folder, new if it has none. Throws an Error that names the remedy. */
export async function claimBlock(range: AddressBlock, data_dir: string): Promise<BlockClaim> {
  const claim = await withBlockLock(async () => {
    const block = (await findBlock(data_dir)) ?? (await claimNew(range, data_dir))
    return { block, leave: await holdBlock(block) }
  })
  try {
    await prepare(claim.block)
  } catch (error) {
    await claim.leave()
    throw error
  }
  return claim
}

/** Repeated for a claim that was interrupted. */
async function prepare(block: Block): Promise<void> {
  writeFileSync(`/proc/sys/net/ipv6/conf/${block.interface}/disable_ipv6`, '1')
  // Local routes instead of addresses: when an address of the machine appears, browsers on it end their open requests.
  await ipBatch([
    `link set ${block.interface} up`,
    ...[block.services, block.edge, block.players].map(
      (network) => `route replace local ${network} dev ${block.interface} table local`,
    ),
  ])
}

async function claimNew(range: AddressBlock, data_dir: string): Promise<Block> {
  const block = await claimFree(range, data_dir)
  if (block !== null) return block
  if ((await removeAbandonedBlocks()) > 0) {
    const freed = await claimFree(range, data_dir)
    if (freed !== null) return freed
  }
  throw new Error(NO_FREE_BLOCK)
}

/** Null: none of the range is free. */
async function claimFree(range: AddressBlock, data_dir: string): Promise<Block | null> {
  const count = blocksIn(range)
  const start = Number.parseInt(hash('sha256', data_dir).slice(0, 8), 16)
  const networks = [...ownAddresses(), ...routes()]
  for (let tried = 0; tried < Math.min(count, TRIES_MAX); tried++) {
    const block = blockIn(range, (start + tried) % count, ownerOf(data_dir))
    if (networks.some(({ first, bits }) => overlaps(block, first, bits))) continue
    try {
      await run(['ip', 'link', 'add', 'name', block.interface, 'address', macOf(data_dir), 'type', 'bridge'])
      return block
    } catch (error) {
      if (!String(error).includes('File exists')) throw error
    }
  }
  return null
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
