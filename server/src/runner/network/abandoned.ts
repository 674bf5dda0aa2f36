// Removes the blocks of platforms that do not come back, such as those of a killed platform whose data folder was deleted.
// It is done only when a range has no free block left, so a platform that is away for a while usually keeps its own.
import {
  blockOf,
  indexIn,
  lobbyPrefix,
  type NetworkNames,
  namesOf,
  namespacePrefix,
  ownerOfNamespace,
  TABLE_PREFIX,
} from './addresses.ts'
import { type BlockLink, listBlocks, ownerDigits, releaseBlock } from './block.ts'
import { isHeld } from './block-holders.ts'
import { interfaces, namespaces, pidsIn, removeNamespaces } from './namespace.ts'
import { removeTableText } from './rules.ts'
import { listTables, run } from './system-command.ts'

/** Blocks removed at once: the claim that needs one waits for it. */
const REMOVED_MAX = 16

/** To be called under the lock of blocks. Returns how many blocks were removed. */
export async function removeAbandonedBlocks(): Promise<number> {
  let removed = 0
  for (const link of await listBlocks()) {
    if (removed === REMOVED_MAX) break
    const networks = isHeld(link.interface) ? null : await abandonedNetworks(link)
    if (networks === null) continue
    await removeNamespaces(networks)
    for (const table of await tablesOf(link)) await run(['nft', '-f', '-'], removeTableText(table))
    await releaseBlock(blockOf(link.number, ''))
    removed++
  }
  return removed
}

/** Null: a process is in one of them, or may be in one that this process cannot see. */
async function abandonedNetworks({ number, mac }: BlockLink): Promise<NetworkNames[] | null> {
  const owner = namespaces()
    .map(ownerOfNamespace)
    .find((one) => one?.startsWith(ownerDigits(mac)))
  const block = blockOf(number, owner ?? '')
  const indexes = indexesIn(namespaces(), namespacePrefix(block))
  // A platform in a container has its namespaces in a folder of its own.
  const is_hidden = indexesIn(interfaces(), lobbyPrefix(block)).some((index) => !indexes.includes(index))
  if (is_hidden) return null
  const networks = indexes.map((index) => namesOf(block, index))
  const pids = await Promise.all(networks.map(pidsIn))
  return pids.flat().length > 0 ? null : networks
}

function indexesIn(names: readonly string[], prefix: string): number[] {
  return names.flatMap((name) => indexIn(name, prefix) ?? [])
}

async function tablesOf({ mac }: BlockLink): Promise<string[]> {
  return (await listTables()).filter((table) => table.startsWith(`${TABLE_PREFIX}${ownerDigits(mac)}`))
}
