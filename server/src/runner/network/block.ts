// The blocks of addresses on this machine: for each an interface whose name contains the number of the block, and whose
// hardware address is derived from the data folder, so a new runner recognises the claim of a killed one.
import { hash } from 'node:crypto'
import { type Block, blockOf, MACHINE_PREFIX } from './addresses.ts'
import { interfaces } from './namespace.ts'
import { ipBatch, run } from './system-command.ts'

/** Digits of the owner in a hardware address. */
const MAC_DIGITS = 10

/** `mac`: differs between platforms. */
export type BlockLink = { number: number; interface: string; mac: string }

/** The block that this data folder has claimed; null: none. */
export async function findBlock(data_dir: string): Promise<Block | null> {
  const mac = macOf(data_dir)
  const link = (await listBlocks()).find((one) => one.mac === mac)
  return link === undefined ? null : blockOf(link.number, ownerOf(data_dir))
}

export async function releaseBlock(block: Block): Promise<void> {
  await ipBatch([`link del ${block.interface}`], { is_forced: true }).catch(() => undefined)
}

/** Lists the blocks of all platforms in this network namespace. */
export async function listBlocks(): Promise<BlockLink[]> {
  if (!interfaces().some((name) => name.startsWith(MACHINE_PREFIX))) return []
  const text = await run(['ip', '-json', 'link', 'show', 'type', 'bridge'])
  const links = text.trim() === '' ? [] : (JSON.parse(text) as { ifname?: string; address?: string }[])
  return links.flatMap(({ ifname = '', address = '' }) => {
    const number = ifname.startsWith(MACHINE_PREFIX) ? numberIn(ifname) : null
    return number === null ? [] : [{ number, interface: ifname, mac: address }]
  })
}

function numberIn(name: string): number | null {
  const number = Number.parseInt(name.slice(MACHINE_PREFIX.length), 36)
  return Number.isInteger(number) && blockOf(number, '').interface === name ? number : null
}

export const ownerOf = (data_dir: string): string => hash('sha256', data_dir).slice(0, 12)

/** A locally administered address. */
export function macOf(data_dir: string): string {
  return ['02', ...ownerOf(data_dir).slice(0, MAC_DIGITS).match(/../g)!].join(':')
}

/** The first digits of the owner of the block of this interface. */
export const ownerDigits = (mac: string): string => mac.replaceAll(':', '').slice(-MAC_DIGITS)
