// The client's address: one value, made here once for a request, for limits, captcha, verification and logs. It is the
// socket's peer, or, when that is a trusted proxy, the first untrusted address of X-Forwarded-For from the right.
// Whatever cannot be read leaves the peer; what a client wrote to the left of it is never believed. An address counts
// only when node:net and ipaddr.js read the same from it.
import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

export type TrustedProxies = readonly (readonly [Address, number])[]

/** Proxies between the client and us. */
const HOPS_MAX = 16
/** Eight groups of four, the last two as an IPv4 address. */
const ADDRESS_LENGTH_MAX = 45
const MAPPED_PREFIX = '::ffff:'
const MAPPED_BITS = 96
/** RFC 2765. */
const TRANSLATED = ipaddr.IPv6.parse('::ffff:0:0:0')
/** RFC 6052, the well-known prefix. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::')

/** CIDR blocks or single addresses. Throws an Error that names the one it cannot take, for the operator. */
export function parseTrustedProxies(cidrs: readonly string[]): TrustedProxies {
  return cidrs.map((cidr) => {
    const [text = '', prefix, ...rest] = cidr.split('/')
    const address = parseAddress(text)
    if (address === null || rest.length > 0) throw new Error(`${JSON.stringify(cidr)} is not a CIDR block.`)
    const full = address.kind() === 'ipv4' ? 32 : 128
    // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
    const offset = address.kind() === 'ipv4' && text.includes(':') ? MAPPED_BITS : 0
    const bits = prefix === undefined ? full : /^\d{1,3}$/.test(prefix) ? Number(prefix) - offset : Number.NaN
    // A block of everybody would believe what the client itself wrote.
    if (!(bits >= 1 && bits <= full))
      throw new Error(`The prefix length of ${JSON.stringify(cidr)} is not possible here.`)
    return [address, bits]
  })
}

/**
 * The address of the client behind a request, in canonical form: IPv4 dotted (IPv4-mapped too), IPv6 as in RFC 5952
 * without a zone. `forwarded_for` is the X-Forwarded-For header; an element is an address, with or without a port, an
 * IPv6 address with a port in brackets. When all elements are trusted it is the left-most, which a proxy of ours saw.
 */
export function clientIp(
  request: { peer: string; forwarded_for: string | undefined },
  trusted: TrustedProxies,
): string {
  const peer = peerAddress(request.peer)
  const header = request.forwarded_for
  if (header === undefined || !isTrusted(peer, trusted)) return peer
  return forwardedClient(header, trusted) ?? peer
}

/** The client in an X-Forwarded-For header that a trusted peer has sent; null when the header cannot be read. */
export function forwardedClient(forwarded_for: string, trusted: TrustedProxies): string | null {
  let end = forwarded_for.length
  for (let hop = 0; hop < HOPS_MAX; hop++) {
    const comma = forwarded_for.lastIndexOf(',', end - 1)
    const address = forwardedAddress(forwarded_for.slice(comma + 1, end))
    if (address === null || comma === -1 || !isTrusted(address, trusted)) return address
    end = comma
  }
  return null
}

/**
 * The key under which a client is counted. IPv4: the address. IPv6: its /64, which is what one subscriber has at
 * least. Where IPv6 only carries IPv4 (mapped, translated, NAT64, 6to4, Teredo) it is that IPv4 address if it is a
 * public one, for these prefixes are shared by everybody. Loopback, link-local and the rest of those prefixes: exact.
 */
export function clientKey(address: string): string {
  const plain = plainIPv4(address)
  if (plain !== null) return plain
  const parsed = parseAddress(address)
  // Not an address: a local socket. Never longer than an address, so that a key of a limiter is never large.
  if (parsed === null) return address.slice(0, ADDRESS_LENGTH_MAX)
  if (!isIPv6Address(parsed)) return parsed.toString()
  const carried = carriedIPv4(parsed)
  if (carried !== null) return carried.range() === 'unicast' ? carried.toString() : parsed.toString()
  return isExact(parsed) ? parsed.toString() : `${new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0])}/64`
}

/**
 * The canonical form (see clientIp) of an address that somebody wrote down: without port, zone, leading zeros. Null
 * for everything else.
 */
export function canonicalAddress(text: string): string | null {
  return parseAddress(text)?.toString() ?? null
}

function carriedIPv4(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  const [first = 0, second = 0, third = 0, , , , seventh = 0, eighth = 0] = address.parts
  if (address.match(TRANSLATED, 96) || address.match(NAT64, 96)) return ipv4Of(seventh, eighth)
  if (first === 0x2002) return ipv4Of(second, third)
  // Teredo (2001::/32) hides the client's address by inverting it.
  if (first === 0x2001 && second === 0) return ipv4Of(~seventh, ~eighth)
  return null
}

function ipv4Of(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([(high >> 8) & 0xff, high & 0xff, (low >> 8) & 0xff, low & 0xff])
}

/** ::/64 (loopback), fe80::/10 (all neighbours share it) and NAT64 for local use, 64:ff9b:1::/48. */
function isExact(address: ipaddr.IPv6): boolean {
  const [first = 0, second = 0, third = 0, fourth = 0] = address.parts
  if (first === 0 && second === 0 && third === 0 && fourth === 0) return true
  return (first & 0xffc0) === 0xfe80 || (first === 0x64 && second === 0xff9b && third === 1)
}

/** What nearly all sockets say, cheaply: IPv4, which a dual-stack socket writes as mapped. */
function plainIPv4(text: string): string | null {
  if (isIPv4(text)) return text
  const rest = text.startsWith(MAPPED_PREFIX) ? text.slice(MAPPED_PREFIX.length) : ''
  return isIPv4(rest) ? rest : null
}

function peerAddress(peer: string): string {
  const plain = plainIPv4(peer)
  if (plain !== null) return plain
  const zone = peer.indexOf('%')
  return parseAddress(zone === -1 ? peer : peer.slice(0, zone))?.toString() ?? peer
}

function forwardedAddress(element: string): string | null {
  const text = element.trim()
  const withPort = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::\d{1,5})?$/.exec(text)
  if (withPort?.[1] !== undefined && !isIPv6(withPort[1])) return null
  return parseAddress(withPort?.[1] ?? withPort?.[2] ?? text)?.toString() ?? null
}

/**
 * Null unless both parsers read the same. IPv4-mapped becomes IPv4; a zone is refused, and so is ::a.b.c.d, long out of
 * use, which ipaddr.js takes for IPv4-mapped.
 */
function parseAddress(text: string): Address | null {
  if (text.length > ADDRESS_LENGTH_MAX || text.includes('%')) return null
  if (isIPv4(text)) {
    const address = ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : null
    return address?.toString() === text ? address : null
  }
  if (!isIPv6(text) || !ipaddr.IPv6.isValid(text)) return null
  const address = ipaddr.IPv6.parse(text)
  if (ipv6Text(address.toString()) !== ipv6Text(text)) return null
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

/** How node:net writes what it reads. */
function ipv6Text(text: string): string {
  return new SocketAddress({ address: text, family: 'ipv6' }).address
}

/** Whether what this peer says of a request is believed. */
export function isTrustedPeer(peer: string, trusted: TrustedProxies): boolean {
  return trusted.length > 0 && isTrusted(peerAddress(peer), trusted)
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  if (trusted.length === 0) return false
  const parsed = parseAddress(address)
  return parsed !== null && trusted.some(([block, bits]) => block.kind() === parsed.kind() && parsed.match(block, bits))
}

function isIPv6Address(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6'
}
