// A name server for a test: real packets over UDP on a free port of 127.0.0.1, answering what the test says.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import packet, { type Answer } from 'dns-packet'

/** What a name answers: records by type, or a trouble. `NXDOMAIN` is also what unknown names answer. */
export type Zone = { A?: string[]; AAAA?: string[]; CNAME?: string } | 'NXDOMAIN' | 'SERVFAIL' | 'SILENCE'

const RESPONSE_CODES = { NXDOMAIN: 3, SERVFAIL: 2 }
const TRUNCATED_BYTES = 65_000

export type NameServer = {
  /** `address:port`, as the setting takes it. */
  address: string
  zones: Map<string, Zone | ((question: number) => Zone)>
  /** Records that nobody asked for, in every answer. */
  additionals: Answer[]
  /** Answers of this many bytes of rubbish. */
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
    const found = server.zones.get(name.toLowerCase()) ?? 'NXDOMAIN'
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

function answersOf(name: string, type: string, zone: Exclude<Zone, string>): Answer[] {
  const ttl = 0
  if (type === 'CNAME') return zone.CNAME === undefined ? [] : [{ type: 'CNAME', name, ttl, data: zone.CNAME }]
  const alias: Answer[] = zone.CNAME === undefined ? [] : [{ type: 'CNAME', name, ttl, data: zone.CNAME }]
  const owner = zone.CNAME ?? name
  if (type === 'A') return [...alias, ...(zone.A ?? []).map((data) => ({ type: 'A' as const, name: owner, ttl, data }))]
  if (type === 'AAAA')
    return [...alias, ...(zone.AAAA ?? []).map((data) => ({ type: 'AAAA' as const, name: owner, ttl, data }))]
  return []
}
