// The nftables rules of lobby networks, as texts for `nft -f -`. The machine has one table for each platform; starts change
// only elements of its sets. Each lobby's namespace has a small table of its own, which lets servers listen on 127.0.0.1.
import { type Block, LOBBY_PREFIX, lobbyPrefix, type NetworkNames } from './addresses.ts'

/** Connections that one lobby may have open to the outside. Bounds its part of the machine's connection table. */
const CONNECTIONS_MAX = 1_024
/** Lobbies whose connections are counted. */
const COUNTED_MAX = 8_192

/** Everything that is not the public internet. A lobby with internet access reaches the rest of IPv4. */
const REFUSED_NETWORKS = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
] as const

export type RuleOptions = {
  table: string
  block: Block
  /** Where the platform listens for lobbies on this machine. */
  platform: { address: string; port: number }
  /** The machine's resolver; null: it has none that lobbies can use. */
  resolver: string | null
  /** Interfaces on which the platform switched forwarding on. They forward for lobbies only. */
  opened: readonly string[]
}

/** Makes or replaces the rules in one transaction. The elements of existing lobbies stay. */
export function tableText({ table, block, platform, resolver, opened }: RuleOptions): string {
  const lobbies = `"${lobbyPrefix(block)}*"`
  const all = `"${LOBBY_PREFIX}*"`
  const dns = 'meta l4proto { tcp, udp } th dport 53'
  // The kernel limits ICMP errors to one a second. A TCP reset ends every attempt at once.
  const refuse = (condition: string): string[] => [
    `${condition} meta l4proto tcp reject with tcp reset`,
    `${condition} reject with icmpx type admin-prohibited`,
  ]
  const chains: Record<string, { hook: string; rules: string[] }> = {
    // A packet of a lobby has its own address, and IPv4 only.
    spoofed: {
      hook: 'type filter hook prerouting priority raw; policy accept;',
      rules: [`iifname ${lobbies} iifname . ip saddr @lobbies accept`, `iifname ${lobbies} drop`],
    },
    limited: {
      hook: 'type filter hook prerouting priority filter; policy accept;',
      rules: [`iifname ${lobbies} ct state new add @connections { ip saddr ct count over ${CONNECTIONS_MAX} } drop`],
    },
    services: {
      hook: 'type nat hook prerouting priority dstnat; policy accept;',
      rules: [
        `iifname ${lobbies} ip daddr ${block.services} tcp dport ${platform.port} dnat ip to ${platform.address}:${platform.port}`,
        `iifname ${lobbies} ip daddr ${block.services} tcp dport @redirected dnat ip to ${platform.address}`,
        ...(resolver === null ? [] : [`iifname ${lobbies} ip daddr ${block.services} ${dns} dnat ip to ${resolver}`]),
      ],
    },
    machine: {
      hook: 'type filter hook input priority filter; policy accept;',
      rules: [
        `iifname != ${lobbies} accept`,
        'ct state established,related accept',
        `ct status dnat ct original ip daddr ${block.services} accept`,
        ...refuse(''),
      ],
    },
    outside: {
      hook: 'type filter hook forward priority filter; policy accept;',
      rules: [
        // Nothing from outside reaches a lobby but replies.
        `oifname ${lobbies} ct state established,related accept`,
        ...refuse(`iifname ${lobbies} oifname ${all}`),
        `oifname ${lobbies} drop`,
        ...(opened.length === 0
          ? []
          : [`iifname { ${opened.map((name) => `"${name}"`).join(', ')} } oifname != ${all} drop`]),
        `iifname != ${lobbies} accept`,
        `ct status dnat ct original ip daddr ${block.services} accept`,
        ...refuse('iifname != @internet'),
        ...refuse('ip daddr @refused'),
        'accept',
      ],
    },
    translated: {
      hook: 'type nat hook postrouting priority srcnat; policy accept;',
      rules: [`iifname ${lobbies} oifname != ${all} masquerade`],
    },
  }
  const names = Object.keys(chains)
  return [
    `add table inet ${table}`,
    `add set inet ${table} lobbies { type ifname . ipv4_addr; }`,
    `add set inet ${table} internet { type ifname; }`,
    `add set inet ${table} redirected { type inet_service; }`,
    `add set inet ${table} refused { type ipv4_addr; flags interval; }`,
    `add set inet ${table} connections { type ipv4_addr; size ${COUNTED_MAX}; flags dynamic; }`,
    `add element inet ${table} refused { ${REFUSED_NETWORKS.join(', ')} }`,
    ...names.map((name) => `add chain inet ${table} ${name} { ${chains[name]!.hook} }`),
    ...names.map((name) => `flush chain inet ${table} ${name}`),
    ...names.flatMap((name) => chains[name]!.rules.map((rule) => `add rule inet ${table} ${name} ${rule}`)),
    '',
  ].join('\n')
}

/** Admits lobbies with access to the internet. */
export function admitText(table: string, networks: readonly NetworkNames[]): string {
  if (networks.length === 0) return ''
  const sources = networks.map(({ interface: name, address }) => `"${name}" . ${address}`)
  const names = networks.map(({ interface: name }) => `"${name}"`)
  return [
    `add element inet ${table} lobbies { ${sources.join(', ')} }`,
    `add element inet ${table} internet { ${names.join(', ')} }`,
    '',
  ].join('\n')
}

/** Ends the access to the internet. */
export function isolateText(table: string, networks: readonly NetworkNames[]): string {
  return networks.map(({ interface: name }) => `delete element inet ${table} internet { "${name}" }\n`).join('')
}

/** Gives an admitted lobby the access to the internet that was ended. */
export function connectText(table: string, networks: readonly NetworkNames[]): string {
  return networks.map(({ interface: name }) => `add element inet ${table} internet { "${name}" }\n`).join('')
}

/** Ports at the platform's address that lobbies reach, beside its own. */
export function redirectedText(table: string, ports: readonly number[]): string {
  return ports.length === 0 ? '' : `add element inet ${table} redirected { ${ports.join(', ')} }\n`
}

/** Removes elements, whether they exist or not. */
export function dismissText(table: string, networks: readonly NetworkNames[]): string {
  if (networks.length === 0) return ''
  const [sources = '', names = ''] = admitText(table, networks).split('\n')
  return [sources, names, ...[sources, names].map((line) => line.replace('add', 'delete')), ''].join('\n')
}

/** Idempotent. */
export const removeTableText = (table: string): string => `add table inet ${table}\ndelete table inet ${table}\n`

/**
 * The table inside a namespace, stateless. Packets of the edge are addressed to 127.0.0.1, and replies get the lobby's
 * address, so a server that listens on 127.0.0.1 or on all addresses is reached.
 */
export function lobbyTableText(block: Block, { address }: NetworkNames): string {
  return [
    'table ip muster {',
    '  chain arriving {',
    '    type filter hook prerouting priority raw; policy accept;',
    `    iifname "eth0" ip saddr { ${block.edge}, ${block.players} } ip daddr set 127.0.0.1`,
    '  }',
    '  chain leaving {',
    '    type filter hook postrouting priority srcnat; policy accept;',
    `    oifname "eth0" ip saddr 127.0.0.0/8 ip saddr set ${address}`,
    '  }',
    '}',
    '',
  ].join('\n')
}
