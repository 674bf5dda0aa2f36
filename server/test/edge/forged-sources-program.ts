// Somebody in a network namespace of forged-sources.test.ts: who sends as if he were the victims, a victim, or a lobby's
// game. It is asked by lines of JSON and answers with one each; it ends with its standard input.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

const [, , who, reply_text = '', edge = ''] = process.argv
const VICTIMS = '10.77.2'
const PORT_FIRST = 40_000
/** Sent before the others are given a moment. */
const BURST = 32
/** With more of them each is opened, used once and closed. */
const PORTS_KEPT_MAX = 64
const ANSWERS_MS = 1_000
/** As much as the kernel gives: what is lost at the receiver would not be counted. */
const RECEIVE_BYTES = 4 * 1_024 * 1_024

type Wish = {
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

/** Its own address or not: this machine believes that it has them all. Some at a time, then the others get a moment. */
async function forge({ victims, ports, count, length, number, text }: Wish) {
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
    // Those of one source one after another: with few sources the same may be meant twice.
    if (victims * ports >= BURST) await Promise.all(burst.map(send))
    else for (const sent of burst) await send(sent)
    await delay(1)
  }
  return { bytes }
}

const seen = { bytes: 0, victims: new Set<string>() }

/** At each of its addresses, at the ports that are forged. */
async function listen({ ports }: Wish) {
  for (let port = PORT_FIRST + 1; port < PORT_FIRST + ports; port++) {
    const socket = await bound('0.0.0.0', port)
    socket.on('message', (datagram) => {
      seen.bytes += datagram.length
    })
  }
  // Which of them was meant is not told to a socket of all addresses: at the first port each has its own.
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

function count({ is_last }: Wish) {
  const answer = { bytes: seen.bytes, victims: seen.victims.size }
  if (is_last) {
    seen.bytes = 0
    seen.victims.clear()
  }
  return answer
}

/** From a port of its own: first something new, then what came back, then the same after it has shown cookie and token. */
async function play({ number, length, token }: Wish) {
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

/** Sends it until something comes. */
async function ask(socket: Socket, number: number, datagram: Buffer): Promise<Buffer> {
  for (;;) {
    socket.send(datagram, number, edge)
    const answer = await Promise.race([once(socket, 'message'), delay(ANSWERS_MS, null)])
    if (answer !== null) return answer[0] as Buffer
  }
}

/** Shows the edge's cookie and the token. Done already, it is welcomed at once. */
async function introduce(socket: Socket, number: number, token: string): Promise<void> {
  const words = (kind: number, ...rest: (string | Buffer)[]) =>
    Buffer.concat([Buffer.from('MUST'), Buffer.from([kind]), ...rest.map((part) => Buffer.from(part))])
  const answer = await ask(socket, number, words(1, token))
  if (answer[4] === 2) await ask(socket, number, words(3, answer.subarray(5), token))
}

let visitor: Socket | null = null

/** Always from the same port. */
async function visit({ number, token = '' }: Wish) {
  visitor ??= await bound(`${VICTIMS}.200`, 0)
  await introduce(visitor, number, token)
  const answer = await ask(visitor, number, Buffer.alloc(60, 'a visitor '))
  return { port: Number(String(answer).split(' ')[0]) }
}

/** What a connection to the edge's HTTP is answered. */
async function request({ number }: Wish) {
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

/** A lobby's game, which knows nothing of forgers. */
async function open() {
  const reply = new Function(`return ${reply_text}`)() as (datagram: Buffer, source: RemoteInfo) => Buffer[]
  const socket = await bound('127.0.0.1', 0)
  socket.on('message', (datagram, source) => {
    for (const answer of reply(datagram, source)) socket.send(answer, source.port, source.address)
  })
  return { port: socket.address().port }
}

const DEEDS = { forge, listen, count, play, visit, connect: request, open }
let work: Promise<unknown> = Promise.resolve()
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const wish = JSON.parse(line) as Wish
    work = work.then(async () => process.stdout.write(`${JSON.stringify(await DEEDS[wish.kind](wish))}\n`))
  })
  .on('close', () => process.exit(0))
if (who === undefined) process.exitCode = 1
