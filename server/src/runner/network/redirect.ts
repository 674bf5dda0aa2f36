// Redirects ports of a lobby's own loopback interface to a listener of this machine, within the lobby's network. Its server
// finds the platform where the SDK of another platform expects it. The listener knows the caller by the lobby's address.
import { inNamespace } from './namespace.ts'
import { run } from './system-command.ts'

/** A lobby's network, as far as a redirection needs it. */
type RedirectedNetwork = { namespace: string; address: string; services: string }

/** `port`: of the listener, at the address at which the lobby reaches the platform. */
export async function redirectPorts(network: RedirectedNetwork, ports: readonly number[], port: number): Promise<void> {
  const [program = '', ...enter] = inNamespace(network.namespace)
  await run([program, ...enter, 'nft', '-f', '-'], redirectText(network, ports, port))
}

/**
 * The table is made again each time, so that a repeated call changes the port. The source address is set before the table of
 * namespace.ts sees the packet.
 */
function redirectText({ address, services }: RedirectedNetwork, ports: readonly number[], port: number): string {
  return [
    'add table ip muster_protocol',
    'delete table ip muster_protocol',
    'table ip muster_protocol {',
    '  chain calling {',
    '    type nat hook output priority -100; policy accept;',
    `    ip daddr 127.0.0.0/8 tcp dport { ${ports.join(', ')} } dnat to ${services}:${port}`,
    '  }',
    '  chain leaving {',
    '    type nat hook postrouting priority 90; policy accept;',
    `    oifname "eth0" ip saddr 127.0.0.0/8 ip daddr ${services} snat to ${address}`,
    '  }',
    '}',
    '',
  ].join('\n')
}
