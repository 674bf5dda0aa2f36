// Opens the networks of lobbies for a driver. Where this machine cannot give lobbies networks, MUSTER_SANDBOX decides whether
// lobbies share the machine's network, or the start is refused.
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { StartError } from '../../config/start-error.ts'
import { findForeignDrops } from './foreign-firewalls.ts'
import { LobbyNetworks, type NetworkOptions } from './lobby-networks.ts'

type OpenNetworksOptions = {
  data_dir: string
  /** The folder of the platform's own files. */
  own_folder: string
  sandbox: Config['sandbox']
  log: Logger
  /** Null: lobbies share the network of this machine. */
  network: NetworkOptions | null
  /** Throws where the driver cannot start a lobby in this namespace. */
  tryNamespace?: (namespace: string) => Promise<void>
}

/** Null: lobbies share the network of this machine, as the log says. */
export async function openNetworks(options: OpenNetworksOptions): Promise<LobbyNetworks | null> {
  const { network, sandbox, log } = options
  if (network === null) {
    log.warn('lobbies share the network of this machine; run only trusted builds')
    return null
  }
  try {
    const networks = await LobbyNetworks.open({ ...options, ...network })
    for (const { reason, remedy } of await findForeignDrops().catch(() => [])) {
      log.warn({ reason, remedy }, 'another firewall of this machine stops lobbies')
    }
    return networks
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (sandbox === 'required') {
      throw new StartError(
        `A network for each lobby is required and does not work here: ${reason}. Run the platform as root with iproute2 and nftables, or set MUSTER_LOBBY_NETWORK=machine to run trusted builds in the network of this machine.`,
      )
    }
    log.warn({ reason }, 'lobbies share the network of this machine; run only trusted builds')
    return null
  }
}

/** The /etc/resolv.conf of lobbies. */
export const resolverText = ({ services }: LobbyNetworks): string => `nameserver ${services}\n`
