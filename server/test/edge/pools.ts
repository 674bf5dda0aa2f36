// An edge with small pools in front of a real platform: what fills the pools of a real edge takes thousands of connections.
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { ARRIVING_POOL, type PoolLimits, ROLE_POOLS } from '../../src/edge/limits.ts'
import { startEdge } from '../../src/edge/start.ts'
import { freePorts } from '../support/free-ports.ts'
import type { Platform } from '../support/platform.ts'

/** The pools of the edge, divided by this. */
const SCALE = 16

const scaled = ({ slots_max, client_max }: PoolLimits): PoolLimits => ({
  slots_max: slots_max / SCALE,
  client_max: client_max / SCALE,
})

export const SMALL_LIMITS = {
  role_pools: {
    seat: scaled(ROLE_POOLS.seat),
    call: scaled(ROLE_POOLS.call),
    wait: scaled(ROLE_POOLS.wait),
    upload: scaled(ROLE_POOLS.upload),
    live: scaled(ROLE_POOLS.live),
    parked: scaled(ROLE_POOLS.parked),
  },
  arriving_pool: scaled(ARRIVING_POOL),
}

export type SmallEdge = {
  port: number
  ask: (asked: Asked) => Promise<HttpResponse>
  /** A connection from a client of this number, over which these bytes are sent. */
  open: (client: number, bytes: string) => Socket
  /** Requests that hold a place, by `role pool`. */
  places: () => Promise<Record<string, number>>
}
type Asked = { client: number; method?: string; path: string; token?: string; body?: unknown; signal?: AbortSignal }
export type HttpResponse = { status: number; headers: Record<string, unknown>; body: string }

/** Each client has an address of its own. */
export const addressOf = (client: number): string => `127.0.${100 + Math.floor(client / 250)}.${1 + (client % 250)}`

export async function startSmallEdge(t: TestContext, { ctx }: Platform): Promise<SmallEdge> {
  const [edge_http_port, edge_https_port] = (await freePorts(2)) as [number, number]
  const edge = await startEdge({ ...ctx, config: { ...ctx.config, edge_http_port, edge_https_port } }, SMALL_LIMITS)
  t.after(() => edge.stop({ end_lobbies: false }))
  return {
    port: edge_http_port,
    ask: ({ client, method = 'GET', path, token, body, signal }) =>
      new Promise((resolve, reject) => {
        const sent = body === undefined ? '' : JSON.stringify(body)
        const headers = {
          host: 'localhost',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(sent.length) }),
        }
        const options = { port: edge_http_port, localAddress: addressOf(client), method, path, headers, agent: false }
        const asking = request({ ...options, ...(signal && { signal }) }, (response) => {
          text(response).then(
            (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
            reject,
          )
        })
        asking.on('error', reject)
        asking.end(sent)
      }),
    open(client, bytes) {
      const socket = connect({ port: edge_http_port, host: '127.0.0.1', localAddress: addressOf(client) })
      socket.on('error', () => {})
      socket.write(bytes)
      t.after(() => socket.destroy())
      return socket
    },
    async places() {
      const told = (await ctx.metrics.text()).text.matchAll(
        /^muster_edge_role_requests\{role="(\w+)",pool="(\w+)"\} (\d+)$/gm,
      )
      return Object.fromEntries([...told].map(([, role, pool, value]) => [`${role} ${pool}`, Number(value)]))
    },
  }
}
