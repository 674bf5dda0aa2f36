// A machine with several addresses of a family: a client that asked one of them drops replies from another one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { UDP_ADDRESSES_EVERY_MS } from '../../src/edge/limits.ts'
import { bindUdp } from '../../src/edge/streams/udp-socket.ts'
import { inOwnNetwork, ip } from '../support/own-network.ts'
import { until } from '../support/until.ts'
import { startTestEdge, type TestEdge } from './platform.ts'

/** In production the raw ports listen on every address. */
const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.test',
  MUSTER_DOMAIN_CDN: 'pages.test',
  MUSTER_DOMAIN_JOB: 'lobbies.test',
}
const FIRST = { v4: '192.0.2.2', v6: '2001:db8:1::2' }
const SECOND = { v4: '192.0.2.3', v6: '2001:db8:1::3' }
/** One for each address, and one for all others. */
const SOCKETS = 5

inOwnNetwork(import.meta.filename, () => {
  test('a reply leaves from the address that the client asked, also when the machine got it later', async (t) => {
    const edge = await startTestEdge(t, { env: PRODUCTION })
    const server = await startServer(t)
    const { number } = await edge.raw('udp', server.port)
    assert.equal(socketsAt(number), 1, 'with one address of each family, one socket is enough')
    for (const to of [FIRST.v4, FIRST.v6, '127.0.0.1', '::1']) {
      const player = await play(t, { to, from: to, number })
      await player.untilHeard()
    }

    await addAddresses(t, edge, number)
    const players = await Promise.all(
      [
        { to: SECOND.v4, from: FIRST.v4, number },
        { to: SECOND.v6, from: FIRST.v6, number },
        { to: FIRST.v4, from: SECOND.v4, number },
        { to: FIRST.v6, from: SECOND.v6, number },
        { to: '127.0.0.1', from: '127.0.0.1', number },
      ].map((way) => play(t, way)),
    )
    for (const player of players) await player.untilHeard()

    await t.test('and over a planned restart of the edge', async () => {
      const sources = server.sources.size
      const next = await startNext(t, edge)
      await edge.role.retired
      await edge.role.stop({ end_lobbies: false })
      for (const player of players) await player.untilHeard()
      assert.equal(server.sources.size, sources, 'the server sees the same sources as before')
      assert.equal(socketsAt(number), SOCKETS)
      const opened = (await edge.raw('udp', server.port)).number
      const newcomer = await play(t, { to: SECOND.v4, from: FIRST.v4, number: opened })
      await newcomer.untilHeard()
      next.kill('SIGKILL')
    })
  })

  test('a socket of an address that the machine has lost is closed, and its sessions continue', async (t) => {
    const edge = await startTestEdge(t, { env: PRODUCTION })
    const { number } = await edge.raw('udp', (await startServer(t)).port)
    await addAddresses(t, edge, number)
    const player = await play(t, { to: FIRST.v4, from: FIRST.v4, number })
    await player.untilHeard()
    removeAddresses()
    await untilSockets(edge, number, 1)
    await player.untilHeard()
  })

  test('a port of another program is not shared with it', async (t) => {
    const log = pino({ level: 'silent' })
    for (const address of ['::', FIRST.v4]) {
      const other = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reusePort: true })
      other.bind({ port: 0, address, exclusive: true })
      await once(other, 'listening')
      t.after(() => other.close())
      assert.equal(await bindUdp(log, other.address().port, null), null, address)
    }
  })
})

async function addAddresses(t: TestContext, edge: TestEdge, number: number): Promise<void> {
  t.after(removeAddresses)
  ip(`addr add ${SECOND.v4}/24 dev out`)
  ip(`-6 addr add ${SECOND.v6}/64 dev out nodad`)
  await untilSockets(edge, number, SOCKETS)
}

function removeAddresses(): void {
  ip(`-6 addr flush dev out to ${SECOND.v6}`)
  ip(`addr flush dev out to ${SECOND.v4}`)
}

async function untilSockets(edge: TestEdge, number: number, count: number): Promise<void> {
  edge.advance(UDP_ADDRESSES_EVERY_MS)
  await until(`the port has ${count} sockets`, () => socketsAt(number) === count)
}

function socketsAt(number: number): number {
  const lines = ['/proc/net/udp', '/proc/net/udp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(1))
  const end = `:${number.toString(16).padStart(4, '0').toUpperCase()}`
  return lines.filter((line) => line.trim().split(/\s+/)[1]?.endsWith(end)).length
}

async function startServer(t: TestContext) {
  const socket = createSocket('udp4')
  const sources = new Set<number>()
  socket.on('message', (datagram, { port, address }) => {
    sources.add(port)
    socket.send(datagram, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => socket.close())
  return { port: socket.address().port, sources }
}

/** A connected socket, as games have: the kernel drops datagrams that come from another address than `to`. */
async function play(t: TestContext, { to, from, number }: { to: string; from: string; number: number }) {
  const socket: Socket = createSocket(isIPv6(to) ? 'udp6' : 'udp4')
  socket.on('error', () => {})
  let last = ''
  socket.on('message', (datagram) => {
    last = String(datagram)
  })
  socket.bind(0, from)
  await once(socket, 'listening')
  socket.connect(number, to)
  await once(socket, 'connect')
  t.after(() => socket.close())
  let count = 0
  return {
    async untilHeard(): Promise<void> {
      const text = `${to} ${count++}`
      await until(`a reply from ${to} to ${from}`, () => {
        socket.send(text)
        return last === text
      })
    },
  }
}

/** Resolves when the next edge, a process of its own, has taken over. */
async function startNext(t: TestContext, { ctx: { config } }: TestEdge) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'small-edge.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      ...{ PATH: process.env.PATH, MUSTER_DATA: config.data_dir, DATABASE_URL: config.database_url!, ...PRODUCTION },
      ...{ MUSTER_EDGE_HTTP_PORT: '0', MUSTER_EDGE_HTTPS_PORT: '0', MUSTER_API_PORT: '1', MUSTER_MATCHMAKER_PORT: '1' },
      MUSTER_LOG_LEVEL: 'error',
    },
  })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}
