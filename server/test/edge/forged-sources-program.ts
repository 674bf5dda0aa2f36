// A program in a network namespace of forged-sources.test.ts: the sender, a victim, or a lobby's game. It reads commands as
// lines of JSON, writes one line for each, and ends with its standard input.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

const [, , who, reply_text = '', edge = ''] = process.argv
const VICTIMS = '10.77.2'
const PORT_FIRST = 40_000
/** Datagrams sent before the other processes get time. */
const BURST = 32
/** Above this number of sockets each is opened, used once and closed. */
const PORTS_KEPT_MAX = 64
const ANSWERS_MS = 1_000
/** The largest buffer of the kernel: datagrams lost at the receiver would not be counted. */
const RECEIVE_BYTES = 4 * 1_024 * 1_024

type Command = {
  kind: 'listen' | 'forge' | 'play' | 'visit' | 'connect' | 'count' | 'open'
  number: number
  victims: number
  ports: number
  count: number
  length: number
  text?: string
  token?: string
  is_last?: boolean
}

async function bound(address: string, port: number): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.on('error', () => {})
  socket.bind(port, address)
  await once(socket, 'listening')
  socket.setRecvBufferSize(RECEIVE_BYTES)
  return socket
}

const forged = new Map<string, Socket>()

/** Sends in batches, from any address: this machine has all of them. */
async function forge({ victims, ports, count, length, number, text }: Command) {
  let bytes = 0
  const send = async (sent: number): Promise<void> => {
    const address = `${VICTIMS}.${1 + (sent % victims)}`
    const port = PORT_FIRST + (Math.floor(sent / victims) % ports)
    const key = `${address}:${port}`
    const socket = forged.get(key) ?? (await bound(address, port))
    const datagram = text === undefined ? Buffer.alloc(length, `${sent} of a forger `) : Buffer.from(text, 'latin1')
    bytes += datagram.length
    await new Promise((resolve) => socket.send(datagram, number, edge, resolve))
    if (ports > PORTS_KEPT_MAX) socket.close()
    else forged.set(key, socket)
  }
  for (let begin = 0; begin < count; begin += BURST) {
    const burst = Array.from({ length: Math.min(BURST, count - begin) }, (_, index) => begin + index)
    // Datagrams of one source are sent one after another: with few sources the same one may occur twice.
    if (victims * ports >= BURST) await Promise.all(burst.map(send))
    else for (const sent of burst) await send(sent)
    await delay(1)
  }
  return { bytes }
}

const seen = { bytes: 0, victims: new Set<string>() }

/** Listens at each of its addresses, at the forged ports. */
async function listen({ ports }: Command) {
  for (let port = PORT_FIRST + 1; port < PORT_FIRST + ports; port++) {
    const socket = await bound('0.0.0.0', port)
    socket.on('message', (datagram) => {
      seen.bytes += datagram.length
    })
  }
  // A socket for all addresses does not show the destination: at the first port each address has its own socket.
  for (let host = 1; host <= 100; host++) {
    const address = `${VICTIMS}.${host}`
    const socket = await bound(address, PORT_FIRST)
    socket.on('message', (datagram) => {
      seen.bytes += datagram.length
      seen.victims.add(address)
    })
  }
  return {}
}

function count({ is_last }: Command) {
  const reply = { bytes: seen.bytes, victims: seen.victims.size }
  if (is_last) {
    seen.bytes = 0
    seen.victims.clear()
  }
  return reply
}

/** From a port of its own: sends something new, then echoes the reply, then does the same after the handshake. */
async function play({ number, length, token }: Command) {
  const socket = await bound(`${VICTIMS}.1`, 0)
  let got: Buffer[] = []
  socket.on('message', (datagram) => got.push(datagram))
  const answers = async (datagram: Buffer): Promise<Buffer[]> => {
    got = []
    socket.send(datagram, number, edge)
    await delay(ANSWERS_MS)
    return got
  }
  const sumOf = (datagrams: Buffer[]): number => datagrams.reduce((bytes, { length }) => bytes + length, 0)
  const first = await answers(Buffer.alloc(length, 'a player '))
  const before = sumOf(first)
  const echoed = sumOf(await answers(first[0] ?? Buffer.alloc(0)))
  if (token !== undefined) await introduce(socket, number, token)
  const after = sumOf(await answers(Buffer.alloc(length, 'a player ')))
  socket.close()
  return { before, echoed, after }
}

/** Sends a datagram repeatedly until a reply arrives. */
async function ask(socket: Socket, number: number, datagram: Buffer): Promise<Buffer> {
  for (;;) {
    socket.send(datagram, number, edge)
    const reply = await Promise.race([once(socket, 'message'), delay(ANSWERS_MS, null)])
    if (reply !== null) return reply[0] as Buffer
  }
}

/** Completes the handshake. If it is complete already, the edge accepts at once. */
async function introduce(socket: Socket, number: number, token: string): Promise<void> {
  const message = (kind: number, ...rest: (string | Buffer)[]) =>
    Buffer.concat([Buffer.from('MUST'), Buffer.from([kind]), ...rest.map((part) => Buffer.from(part))])
  const reply = await ask(socket, number, message(1, token))
  if (reply[4] === 2) await ask(socket, number, message(3, reply.subarray(5), token))
}

let player: Socket | null = null

/** Sends always from the same port. */
async function visit({ number, token = '' }: Command) {
  player ??= await bound(`${VICTIMS}.200`, 0)
  await introduce(player, number, token)
  const reply = await ask(player, number, Buffer.alloc(60, 'a player '))
  return { port: Number(String(reply).split(' ')[0]) }
}

/** Returns the edge's response over HTTP. */
async function request({ number }: Command) {
  const socket = connect(number, edge)
  let bytes = 0
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    bytes += chunk.length
  })
  socket.write('GET / HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n')
  await new Promise((resolve) => socket.once('close', resolve))
  return { bytes }
}

/** A lobby's game without any protection of its own. */
async function open() {
  const reply = new Function(`return ${reply_text}`)() as (datagram: Buffer, source: RemoteInfo) => Buffer[]
  const socket = await bound('127.0.0.1', 0)
  socket.on('message', (datagram, source) => {
    for (const sent of reply(datagram, source)) socket.send(sent, source.port, source.address)
  })
  return { port: socket.address().port }
}

const DEEDS = { forge, listen, count, play, visit, connect: request, open }
let work: Promise<unknown> = Promise.resolve()
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const command = JSON.parse(line) as Command
    work = work.then(async () => process.stdout.write(`${JSON.stringify(await DEEDS[command.kind](command))}\n`))
  })
  .on('close', () => process.exit(0))
if (who === undefined) process.exitCode = 1
