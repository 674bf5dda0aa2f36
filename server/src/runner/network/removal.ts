// Removes the networks of a platform that does not come back. A runner removes its own with its last lobby. One that was
// killed, or that left lobbies running, leaves namespaces, interfaces, an nftables table and forwarding behind.
import { join } from 'node:path'
import { platformFolder } from '../folders/names.ts'
import { tableOf } from './addresses.ts'
import { findBlock, releaseBlock } from './block.ts'
import { Forwarding } from './forwarding.ts'
import { listNetworks, pidsIn, removeNamespaces } from './namespace.ts'
import { removeTableText } from './rules.ts'
import { listTables, run } from './system-command.ts'

/** Process ids that are named in a refusal. */
const PIDS_SHOWN_MAX = 20

/** `living`: processes of lobbies that still use the networks. Nothing was removed then. */
type Removal = { removed: string[] } | { living: number[] }

/** It must run as root, and while no platform runs on the folder. Removing twice changes nothing. */
export async function removeNetworks(data_dir: string): Promise<Removal> {
  const block = await findBlock(data_dir)
  const networks = block === null ? [] : listNetworks(block)
  const living = (await Promise.all(networks.map(pidsIn))).flat()
  if (living.length > 0) return { living: living.slice(0, PIDS_SHOWN_MAX) }
  await removeNamespaces(networks)
  const table = tableOf(data_dir)
  const has_table = (await listTables()).includes(table)
  if (has_table) await run(['nft', '-f', '-'], removeTableText(table))
  const forwarding = new Forwarding(platformFolder(join(data_dir, 'lobbies')))
  const opened = [...forwarding.opened]
  forwarding.close()
  if (block !== null) await releaseBlock(block)
  return {
    removed: [
      ...networks.map(({ namespace }) => `network ${namespace}`),
      ...(has_table ? [`nftables table ${table}`] : []),
      ...opened.map((name) => `forwarding on ${name}`),
      ...(block === null ? [] : [`interface ${block.interface}`]),
    ],
  }
}
