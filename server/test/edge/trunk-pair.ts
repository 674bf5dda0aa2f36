// The two ends of a trunk without a platform: the edge's, and a role that is Node's HTTP server with a handler.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { createBody } from '../../src/edge/http/body.ts'
import type { Ticks } from '../../src/edge/http/ticks.ts'
import { type TrunkStream, Trunks } from '../../src/edge/proxy/trunks.ts'
import type { Address } from '../../src/edge/routes/routes.ts'
import { RoleTrunks } from '../../src/peers/trunks.ts'
import type { TrunkRequest, TrunkResponse } from '../../src/wire/trunk-frames.ts'
import { TRUNK_PROTOCOL, TRUNK_VERSIONS } from '../../src/wire/trunk-opening.ts'

export const PROOF = 'proof-of-the-test'

/** A request, and what has become of it. */
export type Asked = {
  path: string
  body: string
  lines: string
  /** Whether the client takes what arrives. */
  reads: boolean
  stream: TrunkStream<Asked> | null
  events: string[]
  response: TrunkResponse | null
  received: Buffer[]
  is_over: boolean
}

export type TrunkPair = {
  server: Server
  role: RoleTrunks
  edge: Trunks<Asked>
  address: Address
  ticks: Ticks & { now: number }
  /** Lets a second of the edge's timer pass. */
  tick: () => void
  ask: (path: string, options?: Partial<Pick<Asked, 'body' | 'lines' | 'reads'>>) => Asked
}

export async function startPair(t: TestContext, handle: RequestListener): Promise<TrunkPair> {
  const role = new RoleTrunks(PROOF)
  const server = createServer({ shouldUpgradeCallback: (request) => role.isTrunk(request) }, handle)
  server.on('upgrade', (request, socket, head) => role.accept(request, socket, head, handle))
  const port = await listen(t, server)
  const pair = startEdgeEnd(t, { hostname: '127.0.0.1', port })
  t.after(() => role.close())
  return { ...pair, server, role }
}

export async function listen(t: TestContext, server: Server | ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

export function startEdgeEnd(t: TestContext, address: Address): Omit<TrunkPair, 'server' | 'role'> {
  const checks: (() => void)[] = []
  const ticks = { now: 1, date_line: '', on: (check: () => void) => void checks.push(check), close: () => {} }
  const over = (asked: Asked, event: string): void => {
    asked.events.push(event)
    asked.stream = null
    asked.is_over = true
  }
  const edge: Trunks<Asked> = new Trunks<Asked>({
    ticks,
    proof: PROOF,
    encode({ path, body, lines }, number, batch) {
      const fields = { client_ip: '192.0.2.1', ray_id: 'a-ray', is_secure: true, asks_shard: false }
      const request: TrunkRequest = { method: 'POST', path, lines, has_length: true, ...fields }
      batch.request(number, request, body)
    },
    onAbsent: (asked) => over(asked, 'absent'),
    onUnsent: (asked, error) => over(asked, `unsent ${(error as NodeJS.ErrnoException).code ?? ''}`.trim()),
    onWaits: (asked) => void asked.events.push('waits'),
    onResponse(stream, response, { bytes, body_start, end, is_last }) {
      const { request: asked } = stream
      if (response !== null) {
        asked.response = response
        stream.body = createBody('until_end')
      }
      asked.received.push(Buffer.from(bytes.subarray(body_start, end)))
      stream.owed_bytes += end - body_start
      if (is_last) over(asked, 'done')
      else if (asked.reads) stream.trunk.credit(stream)
      return true
    },
    onLost: (asked) => over(asked, 'lost'),
  })
  t.after(() => edge.close())
  return {
    edge,
    address,
    ticks,
    tick() {
      ticks.now++
      for (const check of checks) check()
    },
    ask(path, { body = '', lines = 'Host: a\r\n', reads = true } = {}) {
      const asked: Asked = {
        ...{ path, body, lines, reads, stream: null, events: [], response: null, received: [], is_over: false },
      }
      const trunk = edge.at(address)
      if (trunk === null) over(asked, 'absent')
      else asked.stream = trunk.send(asked)
      return asked
    },
  }
}

export const bodyOf = ({ received }: Asked): string => Buffer.concat(received).toString()

/** A connection that a role has accepted as a trunk, over which a test sends its own bytes. */
export async function openTrunk(t: TestContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(
    `GET / HTTP/1.1\r\nHost: ${TRUNK_PROTOCOL}\r\nConnection: Upgrade\r\nUpgrade: ${TRUNK_PROTOCOL}\r\nx-muster-edge: ${PROOF}\r\nx-muster-trunk: ${TRUNK_VERSIONS}\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  if (!head.toString().startsWith('HTTP/1.1 101 ')) throw new Error(`the role accepts no trunk: ${head}`)
  return socket
}
