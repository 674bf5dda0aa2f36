// A name server for a test: real packets over UDP on a free port of 127.0.0.1, answering what the test says.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import packet, { type Answer, type CaaData } from 'dns-packet'

/**
 * What a name answers: records by type, or a trouble. `NXDOMAIN` is also what unknown names answer. The key `*.NAME` is a
 * wildcard (RFC 4592): it answers for every name below NAME that has no closer one. A TXT record may be in several pieces.
 */
export type Zone =
  | { A?: string[]; AAAA?: string[]; CNAME?: string; TXT?: (string | string[])[]; CAA?: CaaData[] }
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'SILENCE'

type Entry = Zone | ((question: number) => Zone)

const RESPONSE_CODES = { NXDOMAIN: 3, SERVFAIL: 2 }
const TRUNCATED_BYTES = 65_000

export type NameServer = {
  /** `address:port`, as the setting takes it. */
  address: string
  zones: Map<string, Entry>
  /** Records of other names, in every answer. */
  additionals: Answer[]
  /** Whether answers consist of random bytes, many of them. */
  is_flooding: boolean
  /** Names that were asked, with the type. */
  questions: string[]
}

export async function startNameServer(t: TestContext): Promise<NameServer> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => void socket.close())
  const server: NameServer = {
    address: `127.0.0.1:${socket.address().port}`,
    zones: new Map(),
    additionals: [],
    is_flooding: false,
    questions: [],
  }
  socket.on('message', (bytes, peer) => {
    const query = packet.decode(bytes)
    const { name, type } = query.questions![0]!
    server.questions.push(`${type} ${name.toLowerCase()}`)
    const found = entryOf(server.zones, name.toLowerCase())
    const asked = server.questions.filter((question) => question === server.questions.at(-1)).length
    const zone = typeof found === 'function' ? found(asked) : found
    if (zone === 'SILENCE') return
    const reply = packet.encode({
      type: 'response',
      id: query.id ?? 0,
      flags:
        packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | (typeof zone === 'string' ? RESPONSE_CODES[zone] : 0),
      questions: query.questions!,
      answers: typeof zone === 'string' ? [] : answersOf(name, type, zone),
      additionals: server.additionals,
    })
    const rubbish = Buffer.alloc(server.is_flooding ? TRUNCATED_BYTES - reply.length : 0)
    socket.send(Buffer.concat([reply, rubbish]), peer.port, peer.address)
  })
  return server
}

/** By name, or by the wildcard right below the closest name that is there. */
function entryOf(zones: ReadonlyMap<string, Entry>, name: string): Entry {
  const isThere = (other: string): boolean =>
    zones.has(other) || [...zones.keys()].some((key) => key.endsWith(`.${other}`))
  if (isThere(name)) return zones.get(name) ?? {}
  const labels = name.split('.')
  for (let first = 1; first < labels.length; first++) {
    const closest = labels.slice(first).join('.')
    if (isThere(closest)) return zones.get(`*.${closest}`) ?? 'NXDOMAIN'
  }
  return 'NXDOMAIN'
}

function answersOf(name: string, type: string, zone: Exclude<Zone, string>): Answer[] {
  const ttl = 0
  if (type === 'CNAME') return zone.CNAME === undefined ? [] : [{ type: 'CNAME', name, ttl, data: zone.CNAME }]
  const alias: Answer[] = zone.CNAME === undefined ? [] : [{ type: 'CNAME', name, ttl, data: zone.CNAME }]
  const owner = zone.CNAME ?? name
  if (type === 'A') return [...alias, ...(zone.A ?? []).map((data) => ({ type: 'A' as const, name: owner, ttl, data }))]
  if (type === 'AAAA')
    return [...alias, ...(zone.AAAA ?? []).map((data) => ({ type: 'AAAA' as const, name: owner, ttl, data }))]
  if (type === 'CAA')
    return [...alias, ...(zone.CAA ?? []).map((data) => ({ type: 'CAA' as const, name: owner, ttl, data }))]
  if (type === 'TXT')
    return [...alias, ...(zone.TXT ?? []).map((data) => ({ type: 'TXT' as const, name: owner, ttl, data }))]
  return []
}
