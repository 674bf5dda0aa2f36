// Loads the firewall rules of docs/deploying.md unchanged in a network namespace, and tries them from a second one, which
// stands for another machine.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { LOBBY_PORTS } from '../../src/config/edge.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { inOwnNetwork, ip } from '../support/own-network.ts'
import { until } from '../support/until.ts'

const DOCS = new URL('../../../docs/deploying.md', import.meta.url)
const FAR_PROGRAM = fileURLToPath(new URL('firewall-program.ts', import.meta.url))
const SSH = 22
/** A call that is dropped waits for ever. */
const OWN_CALL_MS_MAX = 60_000
const POSTGRES = 5432
const HERE = ['198.51.100.1', '2001:db8:2::1']

const { edge_ports, api_port, matchmaker_port, lobby_api_port, metrics } = readConfig({})
const OPEN = { tcp: [SSH, 80, 443, edge_ports.min, edge_ports.max], udp: [edge_ports.min, edge_ports.max] }
const CLOSED = {
  tcp: [POSTGRES, api_port, matchmaker_port, lobby_api_port, metrics!.port, LOBBY_PORTS.min, LOBBY_PORTS.max],
  udp: [LOBBY_PORTS.min, LOBBY_PORTS.max],
}

function documentedRules(): string {
  const rules = /^```nft\n([\s\S]*?)^```$/m.exec(readFileSync(DOCS, 'utf8'))?.[1]
  assert.ok(rules, 'docs/deploying.md shows rules')
  return rules
}

/** Another machine, at the other end of a cable. Returns the process that keeps it. */
async function plugIn(t: TestContext): Promise<ChildProcess> {
  const far = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
  const ended = once(far, 'exit')
  t.after(async () => {
    far.kill('SIGKILL')
    await ended
  })
  const own = execFileSync('readlink', ['/proc/self/ns/net'], { encoding: 'utf8' })
  await until(
    'the other network',
    () => execFileSync('readlink', [`/proc/${far.pid}/ns/net`], { encoding: 'utf8' }) !== own,
  )
  ip('link set far down')
  ip(`link set far netns ${far.pid}`)
  const there = (command: string) => execFileSync('nsenter', ['-t', String(far.pid), '-n', ...command.split(' ')])
  ip('addr add 198.51.100.1/24 dev out')
  ip('-6 addr add 2001:db8:2::1/64 dev out nodad')
  there('ip addr add 198.51.100.2/24 dev far')
  there('ip -6 addr add 2001:db8:2::2/64 dev far nodad')
  there('ip link set lo up')
  there('ip link set far up')
  return far
}

type Arrivals = { tcp: Set<string>; udp: Set<string> }

/** Listens at each of the ports, on all addresses of either family. Returns who has come: `FAMILY PORT`. */
async function listenEverywhere(t: TestContext): Promise<Arrivals> {
  const arrivals: Arrivals = { tcp: new Set(), udp: new Set() }
  for (const port of [...OPEN.tcp, ...CLOSED.tcp]) {
    const server = createServer((socket) => {
      arrivals.tcp.add(`${socket.remoteAddress?.includes('.') ? 4 : 6} ${port}`)
      socket.end()
    })
    await once(server.listen(port, '::'), 'listening')
    t.after(() => server.close())
  }
  for (const port of [...OPEN.udp, ...CLOSED.udp]) {
    const socket = createSocket('udp6', (_, { address }) =>
      arrivals.udp.add(`${address.includes('.') ? 4 : 6} ${port}`),
    )
    await once(socket.bind(port, '::'), 'listening')
    t.after(() => socket.close())
  }
  return arrivals
}

inOwnNetwork(fileURLToPath(import.meta.url), () => {
  test('the firewall rules of the documentation let players in, and to nothing but the edge', async (t) => {
    const rules = documentedRules()
    execFileSync('nft', ['-c', '-f', '-'], { input: rules })
    const far = await plugIn(t)
    const arrivals = await listenEverywhere(t)
    // Twice: they can be loaded again.
    for (const _ of [1, 2]) execFileSync('nft', ['-f', '-'], { input: rules })

    const args = [
      '-t',
      String(far.pid),
      '-n',
      process.execPath,
      FAR_PROGRAM,
      JSON.stringify({ hosts: HERE, OPEN, CLOSED }),
    ]
    const visitor = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [code] = await Promise.all([once(visitor, 'exit'), text(visitor.stdout)])
    assert.deepEqual(code, [0, null])
    const expected = (ports: number[]) => [4, 6].flatMap((family) => ports.map((port) => `${family} ${port}`)).sort()
    assert.deepEqual([...arrivals.tcp].sort(), expected(OPEN.tcp))
    await until('the datagrams', () => arrivals.udp.size >= expected(OPEN.udp).length)
    assert.deepEqual([...arrivals.udp].sort(), expected(OPEN.udp))

    const own_call = { hosts: ['127.0.0.1', ...HERE], OPEN: { tcp: [api_port], udp: [] }, CLOSED: { tcp: [], udp: [] } }
    execFileSync(process.execPath, [FAR_PROGRAM, JSON.stringify(own_call)], { timeout: OWN_CALL_MS_MAX })
  })
})
