// What a client of each game asks its server first, and what the server says then. All numbers are those of the protocol on
// the wire.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { TestContext } from 'node:test'
import { inflateSync } from 'node:zlib'
import { Datagrams } from './datagrams.ts'
import { TeeworldsClient } from './teeworlds-client.ts'

/** `players`: as the server counts them. Null: its protocol has no such number. */
export type Answer = { text: string; players: { count: number; max: number } | null }
export type Probe = {
  /** Asks once, without waiting for a response. */
  send(): Promise<void> | void
  /** Asks until the server has responded. */
  ask(): Promise<Answer>
  /** Packets of the server, or bytes of a TCP connection. */
  received(): number
}
export type OpenProbe = (t: TestContext, url: string, address: string) => Promise<Probe>

const CONNECTIONLESS = Buffer.alloc(4, 0xff)

/** A server whose first request is one datagram, and whose response is another. */
function datagramProbe(request: Buffer, read: (packet: Buffer) => Answer | null): OpenProbe {
  return async (t, url, address) => {
    const socket = await Datagrams.open(t, url, address)
    return { send: () => socket.send(request), ask: () => socket.ask(request, read), received: () => socket.received }
  }
}

/** A client of Teeworlds 0.7 connects. Then the information that a list of servers shows has it as a client. */
export const teeworldsProbe: OpenProbe = async (t, url, address) => {
  const client = await TeeworldsClient.open(t, url, address)
  return {
    send: () => client.sendTokenRequest(),
    async ask() {
      await client.requestToken()
      await client.connect()
      const map = await client.enter()
      assert.ok(map.includes('dm1\0'), map.toString('latin1'))
      const { name, clients, clients_max } = await client.information((one) => one.clients > 0)
      return { text: name, players: { count: clients, max: clients_max } }
    },
    received: () => client.received,
  }
}

const DDNET_INFO_REQUEST = Buffer.concat([Buffer.alloc(10, 0xff), Buffer.from('gie3\x01', 'latin1')])
const DDNET_INFO = Buffer.concat([Buffer.alloc(10, 0xff), Buffer.from('inf3')])
const DDNET = {
  connect: Buffer.from('\x10\0\0\x01TKEN\0\0\0\0', 'latin1'),
  /** The server accepts: a head of three bytes, the number of the message, `TKEN`, and the token of this connection. */
  accept: Buffer.from('\x10\0\0\x02TKEN', 'latin1'),
  accepted: Buffer.from('\x10\0\0\x03', 'latin1'),
  version: systemMessage(1, 1, '0.6 626fce9a778df4d4\0\0'),
  ready: systemMessage(2, 14, ''),
}

/** One vital chunk with its number, in a packet without its token. */
function systemMessage(chunk: number, message: number, rest: string): Buffer {
  const body = Buffer.concat([Buffer.of((message << 1) | 1), Buffer.from(rest)])
  return Buffer.concat([Buffer.of(0, 0, 1, 0x40 | (body.length >> 4), body.length & 0x0f, chunk), body])
}

/** A client of the protocol 0.6 connects and says that it is ready. Then the server counts it. */
export const ddnetProbe: OpenProbe = async (t, url, address) => {
  const socket = await Datagrams.open(t, url, address)
  return {
    send: () => socket.send(DDNET_INFO_REQUEST),
    async ask() {
      const token = await socket.ask(DDNET.connect, (packet) =>
        packet.subarray(0, DDNET.accept.length).equals(DDNET.accept) ? packet.subarray(DDNET.accept.length) : null,
      )
      socket.send(Buffer.concat([DDNET.accepted, token]))
      await socket.ask(Buffer.concat([DDNET.version, token]), (packet) => packet.includes('dm1\0') || null)
      socket.send(Buffer.concat([DDNET.ready, token]))
      return socket.ask(DDNET_INFO_REQUEST, (packet) => {
        if (!packet.subarray(0, DDNET_INFO.length).equals(DDNET_INFO)) return null
        const words = packet.subarray(DDNET_INFO.length).toString('latin1').split('\0')
        const [, , name = '', , , , , , clients, clients_max] = words
        // The server renews this information some time after a client has come.
        return Number(clients) > 0
          ? { text: name, players: { count: Number(clients), max: Number(clients_max) } }
          : null
      })
    },
    received: () => socket.received,
  }
}

export const openArenaProbe = datagramProbe(
  Buffer.concat([CONNECTIONLESS, Buffer.from('getinfo probe\n')]),
  (packet) => {
    const [head = '', text = ''] = packet.toString('latin1').split('\n')
    if (!head.endsWith('infoResponse')) return null
    const words = text.split('\\').slice(1)
    const member = (name: string): string => words[words.indexOf(name) + 1] ?? ''
    assert.equal(member('challenge'), 'probe')
    assert.equal(member('mapname'), 'oa_dm1')
    const players = { count: Number(member('clients')), max: Number(member('sv_maxclients')) }
    return { text: member('hostname'), players }
  },
)

const MINETEST = {
  protocol: Buffer.from([0x4f, 0x45, 0x74, 0x03]),
  /** After the protocol, the peer of the server and the channel: a reliable packet, its number, a control packet, and the id. */
  peer_id: Buffer.from([0x00, 0x01, 0x00, 0x03, 0xff, 0xdc, 0x00, 0x01]),
  /** TOSERVER_INIT: format of serialisation 28, no compression, protocols 37 to 41, and the name of the player. */
  init: Buffer.from([0x00, 0x02, 28, 0, 0, 0, 37, 0, 41, 0, 3, ...Buffer.from('Ada')]),
  hello: 0x02,
  /** TOCLIENT_HELLO: reliable (3) with a number of two bytes, original (1), and the number of the command. */
  helloAt: 7,
}

/** The server gives the client its id. The client says its name, and the server how it authenticates. */
export const minetestProbe: OpenProbe = async (t, url, address) => {
  const socket = await Datagrams.open(t, url, address)
  const first = Buffer.concat([MINETEST.protocol, Buffer.from([0, 0, 0, 1])])
  return {
    send: () => socket.send(first),
    async ask() {
      const head = Buffer.concat([MINETEST.protocol, MINETEST.peer_id])
      const id = await socket.ask(first, (packet) =>
        packet.subarray(0, head.length).equals(head) ? packet.subarray(head.length, head.length + 2) : null,
      )
      const init = Buffer.concat([MINETEST.protocol, id, Buffer.from([1, 1]), MINETEST.init])
      return socket.ask(init, (packet) => {
        const rest = packet.subarray(MINETEST.helloAt)
        const is_hello = rest[0] === 3 && rest[3] === 1 && rest.readUInt16BE(4) === MINETEST.hello
        // The format of serialisation, the compression, the protocol, and the ways to authenticate.
        return is_hello ? { text: `protocol ${rest.readUInt16BE(9)}`, players: null } : null
      })
    },
    received: () => socket.received,
  }
}

const ARMAGETRON = { address_request: 52, address: 50, information_request: 53, information: 51, head_bytes: 6 }
const armagetronRequest = (kind: number): Buffer => Buffer.from([0, kind, 0, 0, 0, 0, 0, 0])

/** A server returns its information only to clients that have asked for its address before. */
export const armagetronProbe: OpenProbe = async (t, url, address) => {
  const socket = await Datagrams.open(t, url, address)
  const request = armagetronRequest(ARMAGETRON.address_request)
  return {
    send: () => socket.send(request),
    async ask() {
      await socket.ask(request, (packet) => packet.readUInt16BE(0) === ARMAGETRON.address || null)
      return socket.ask(armagetronRequest(ARMAGETRON.information_request), (packet) =>
        packet.readUInt16BE(0) === ARMAGETRON.information ? readArmagetron(packet) : null,
      )
    },
    received: () => socket.received,
  }
}

/** Each message: its kind, its number, and how many numbers of 16 bits follow. A larger number has its lower half first. */
function readArmagetron(packet: Buffer): Answer {
  let at = ARMAGETRON.head_bytes
  const readNumber = (): number => {
    at += 4
    return packet.readUInt16BE(at - 4) + packet.readUInt16BE(at - 2) * 2 ** 16
  }
  /** A text has its length in front, and two characters in each number, the second first. */
  const readText = (): string => {
    const length = packet.readUInt16BE(at)
    const end = at + 2 + 2 * Math.ceil(length / 2)
    const text = Buffer.from(packet.subarray(at + 2, end))
      .swap16()
      .toString('latin1')
      .slice(0, Math.max(0, length - 1))
    at = end
    return text
  }
  const port = readNumber()
  const host = readText()
  const name = readText()
  const count = readNumber()
  const versions = [readNumber(), readNumber()]
  const release = readText()
  assert.match(release, /^0\.2\.9/, JSON.stringify({ port, host, versions }))
  return { text: name, players: { count, max: readNumber() } }
}

const FREECIV = {
  capability: '+Freeciv-3.0-network year32 plrculture32 pingfix researchclr cityculture32',
  join_request: 4,
  /** In place of a length: a compressed packet whose length is in the next four bytes. */
  compressed: 0xffff,
  head_bytes: 6,
}

/** A client of Freeciv 3.0 asks to join, over TCP. The first packet of the server says whether it may. */
export const freecivProbe: OpenProbe = async (t, url, address) => {
  const { hostname, port } = new URL(url)
  let bytes = Buffer.alloc(0)
  const open = () => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: address })
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
    })
    const text = ['Ada', FREECIV.capability, 'probe'].map((part) => `${part}\0`).join('')
    const version = Buffer.from([3, 0, 6].flatMap((number) => [0, 0, 0, number]))
    const body = Buffer.concat([Buffer.of(FREECIV.join_request), Buffer.from(text), version])
    const head = Buffer.alloc(2)
    head.writeUInt16BE(body.length + head.length)
    socket.write(Buffer.concat([head, body]))
    return socket
  }
  return {
    /** The platform ends the connection of a stranger. */
    async send() {
      const socket = open()
      await new Promise((resolve) => socket.once('close', resolve))
    },
    async ask() {
      const socket = open()
      while (bytes.length < FREECIV.head_bytes || bytes.length < bytes.readUInt32BE(2)) await once(socket, 'data')
      assert.equal(bytes.readUInt16BE(0), FREECIV.compressed, bytes.toString('latin1'))
      const first = bytes.subarray(FREECIV.head_bytes, bytes.readUInt32BE(2))
      return { text: inflateSync(first).toString('latin1'), players: null }
    },
    received: () => bytes.length,
  }
}
