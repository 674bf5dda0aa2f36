// Adding a TXT record to a zone and removing it again (RFC 2136), at the name server that takes updates, over TCP and signed
// with a key. Other values of the same name are left alone. Which zone a name belongs to is asked of the same server.
import { randomInt } from 'node:crypto'
import { connect, isIPv6 } from 'node:net'
import { bareHost } from '../text/bare-host.ts'
import type { TsigKey } from '../text/tsig-key.ts'
import {
  DNS_CLASS,
  DNS_OPCODE,
  DNS_TYPE,
  type DnsMessage,
  decodeMessage,
  encodeMessage,
  encodeText,
} from './dns-message.ts'
import { signMessage, TsigFailure, verifyResponse } from './tsig.ts'

/** Time for the whole update, from connecting to the response. */
const CALL_MS_MAX = 10_000
/** The length that a message over TCP begins with has two bytes. */
const LENGTH_BYTES = 2
const DNS_PORT = 53
/** TTL of the records that are added: they live for minutes, and a resolver must not keep an older set. */
const TTL_S = 60
const RESPONSE_CODES: Readonly<Record<number, string>> = {
  1: 'FORMERR',
  2: 'SERVFAIL',
  3: 'NXDOMAIN',
  4: 'NOTIMP',
  5: 'REFUSED',
  9: 'NOTAUTH',
  10: 'NOTZONE',
}

export type DnsUpdater = {
  /** `address` or `address:port`; IPv6 with a port in brackets. */
  server: string
  key: TsigKey
  now: () => number
}

/** The name server did not do it; the message says why. */
export class DnsUpdateFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DnsUpdateFailure'
  }
}

/** Adding what is there and removing what is not changes nothing. Throws a DnsUpdateFailure or a TsigFailure. */
export async function updateText(
  updater: DnsUpdater,
  change: 'add' | 'remove',
  record: { name: string; value: string },
): Promise<void> {
  const { server, key } = updater
  const zone = await zoneOf(server, record.name)
  const is_added = change === 'add'
  const data = encodeText(record.value)
  const message = encodeMessage({
    id: newMessageId(),
    opcode: DNS_OPCODE.UPDATE,
    question: { name: zone, type: DNS_TYPE.SOA },
    authorities: [
      {
        ...{ name: record.name, type: DNS_TYPE.TXT, data },
        // Class NONE removes exactly this value (RFC 2136, 2.5.4).
        ...(is_added ? { class: DNS_CLASS.IN, ttl: TTL_S } : { class: DNS_CLASS.NONE, ttl: 0 }),
      },
    ],
  })
  const { signed, mac } = signMessage(message, key, updater.now())
  const bytes = await exchange(server, signed)
  const { response_code } = requireResponse(server, bytes, signed)
  try {
    verifyResponse(bytes, key, mac, updater.now())
  } catch (error) {
    // A server that does not know the zone may refuse without a signature; its code says more than that.
    if (!(error instanceof TsigFailure) || error.is_refusal || response_code === 0) throw error
  }
  if (response_code !== 0) {
    const code = RESPONSE_CODES[response_code] ?? response_code
    throw new DnsUpdateFailure(
      `The name server ${server} refuses to change ${record.name} in the zone ${zone} (${code}).`,
    )
  }
}

/** The zone that the server has the name in: the owner of the SOA record that it returns beside the question. */
async function zoneOf(server: string, name: string): Promise<string> {
  const query = encodeMessage({
    ...{ id: newMessageId(), opcode: DNS_OPCODE.QUERY, question: { name, type: DNS_TYPE.SOA } },
  })
  const { answers, authorities } = requireResponse(server, await exchange(server, query), query)
  const soa = [...answers, ...authorities].find((record) => record.type === DNS_TYPE.SOA)
  if (soa === undefined) throw new DnsUpdateFailure(`The name server ${server} has no zone of ${name}.`)
  return soa.name
}

function requireResponse(server: string, bytes: Buffer, request: Buffer): DnsMessage {
  try {
    const message = decodeMessage(bytes)
    if (message.is_response && message.id === request.readUInt16BE(0)) return message
  } catch (error) {
    throw new DnsUpdateFailure(`The name server ${server} sent what is no DNS message: ${(error as Error).message}`)
  }
  throw new DnsUpdateFailure(`The name server ${server} responded to something else.`)
}

/** One message to the server and one back. */
function exchange(server: string, message: Buffer): Promise<Buffer> {
  const { host, port } = addressOf(server)
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      socket.destroy()
      reject(new DnsUpdateFailure(`The name server ${server} ${why}.`))
    }
    const socket = connect({ host, port })
    const timer = setTimeout(() => fail(`did not respond within ${CALL_MS_MAX / 1_000} s`), CALL_MS_MAX)
    let received = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      // Bounded by the two bytes of the length.
      received = Buffer.concat([received, chunk])
      if (received.length < LENGTH_BYTES) return
      const end = LENGTH_BYTES + received.readUInt16BE(0)
      if (received.length < end) return
      clearTimeout(timer)
      socket.destroy()
      resolve(received.subarray(LENGTH_BYTES, end))
    })
    socket.on('error', (error: NodeJS.ErrnoException) => fail(`cannot be reached (${error.code ?? error.message})`))
    socket.on('close', () => {
      clearTimeout(timer)
      fail('closed the connection without a response')
    })
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt16BE(message.length)
    socket.write(Buffer.concat([length, message]))
  })
}

function addressOf(server: string): { host: string; port: number } {
  if (isIPv6(server)) return { host: server, port: DNS_PORT }
  const { host = server, port = DNS_PORT } = /^\[?(?<host>[^\]]+?)\]?:(?<port>\d+)$/.exec(server)?.groups ?? {}
  return { host: bareHost(host), port: Number(port) }
}

function newMessageId(): number {
  return randomInt(0x10000)
}
