// Writes a small file in MaxMind's DB format (https://maxmind.github.io/MaxMind-DB/): a tree of 128 bits with IPv4 below
// ::/96, records of 24 bits, and the data as they are given.
import ipaddr from 'ipaddr.js'

type Value = string | number | boolean | { [name: string]: Value }
type Node = { children: [Branch, Branch] }
/** What is behind a bit: more bits, data at an offset, or nothing. */
type Branch = Node | number | null

const SEPARATOR_BYTES = 16
const RECORD_BITS = 24
const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')

/** `records`: what is said of each CIDR block. */
export function mmdbFile(records: Record<string, { [name: string]: Value }>): Buffer {
  const root: Node = { children: [null, null] }
  const data: Buffer[] = []
  let offset = 0
  for (const [cidr, value] of Object.entries(records)) {
    insert(root, bitsOf(cidr), offset)
    const bytes = encode(value)
    data.push(bytes)
    offset += bytes.length
  }
  const nodes: Node[] = []
  number(root, nodes)
  const metadata = {
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_790_000_000,
    database_type: 'Test',
    ip_version: 6,
    node_count: nodes.length,
    record_size: RECORD_BITS,
  }
  return Buffer.concat([treeOf(nodes), Buffer.alloc(SEPARATOR_BYTES), ...data, MARKER, encode(metadata)])
}

function bitsOf(cidr: string): number[] {
  const [address, prefix] = ipaddr.parseCIDR(cidr)
  const bits = address.toByteArray().flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> (7 - bit)) & 1))
  return address.kind() === 'ipv4' ? [...Array(96).fill(0), ...bits.slice(0, prefix)] : bits.slice(0, prefix)
}

function insert(root: Node, bits: readonly number[], offset: number): void {
  let node = root
  for (const bit of bits.slice(0, -1)) {
    const branch = node.children[bit] ?? null
    if (typeof branch === 'number') throw new Error('a block of a test file lies inside another')
    const below = branch ?? { children: [null, null] }
    node.children[bit] = below
    node = below
  }
  node.children[bits.at(-1)!] = offset
}

function number(node: Node, nodes: Node[]): void {
  nodes.push(node)
  for (const branch of node.children) if (typeof branch === 'object' && branch !== null) number(branch, nodes)
}

function treeOf(nodes: Node[]): Buffer {
  const index = new Map(nodes.map((node, place) => [node, place]))
  const tree = Buffer.alloc((nodes.length * RECORD_BITS) / 4)
  for (const [place, node] of nodes.entries()) {
    for (const [side, branch] of node.children.entries()) {
      const record =
        branch === null
          ? nodes.length
          : typeof branch === 'number'
            ? nodes.length + SEPARATOR_BYTES + branch
            : index.get(branch)!
      tree.writeUIntBE(record, (place * 2 + side) * 3, 3)
    }
  }
  return tree
}

function encode(value: Value): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value)
    return Buffer.concat([control(2, text.length), text])
  }
  if (typeof value === 'boolean') return Buffer.from([value ? 1 : 0, 14 - 7])
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(Number.isInteger(value) && value >= 0 ? 4 : 8)
    if (bytes.length === 4) bytes.writeUInt32BE(value)
    else bytes.writeDoubleBE(value)
    return Buffer.concat([control(bytes.length === 4 ? 6 : 3, bytes.length), bytes])
  }
  const members = Object.entries(value)
  return Buffer.concat([
    control(7, members.length),
    ...members.flatMap(([name, member]) => [encode(name), encode(member)]),
  ])
}

function control(type: number, size: number): Buffer {
  if (size >= 29 + 256) throw new Error('a text of a test file is too long')
  return size < 29 ? Buffer.from([(type << 5) | size]) : Buffer.from([(type << 5) | 29, size - 29])
}
