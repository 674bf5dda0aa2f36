// The operator's port of a process: its metrics and its health. It is for loopback and internal networks, and reveals no
// secrets. With a token set, the metrics require it: lobbies on this machine reach loopback too.
//
//   /metrics        metrics, for Prometheus
//   /health/live    200 as long as the process responds at all
//   /health/ready   200 when it may receive requests, else 503; with the checks as JSON
import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Health } from './health.ts'
import type { Metrics } from './metrics.ts'

/** For the head and the body of a request at the operator's port. */
const REQUEST_MS_MAX = 10_000
/** Connections to the operator's port. */
const CONNECTIONS_MAX = 64

export type OperatorPort = { port: number; close: () => Promise<void> }
type OperatorAddress = { host: string; port: number; token: string | null }
type Watched = { metrics: Metrics; health: Health; log: Logger }

/** Null when the port is taken. That keeps nobody from playing; it is logged, unless the caller tries again. */
export async function openOperatorPort(
  { host, port, token }: OperatorAddress,
  watched: Watched,
  { tries_again }: { tries_again: boolean },
): Promise<OperatorPort | null> {
  const { log } = watched
  const server = createServer({ requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX }, (req, res) => {
    answer(watched, token, req, res).catch((error: unknown) => {
      log.error({ err: error }, 'the operator could not be answered')
      if (!res.headersSent) say(res, 500, 'text/plain', 'see the log\n')
    })
  })
  server.maxConnections = CONNECTIONS_MAX
  // A connection of a monitor must not keep the process alive.
  server.unref()
  server.listen({ host, port })
  try {
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!tries_again) {
      log.warn({ host, port, code }, 'no metrics: the port cannot be used; MUSTER_METRICS_PORT names another, 0 none')
    }
    return null
  }
  watched.metrics.watchProcess()
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function answer(
  { metrics, health }: Watched,
  token: string | null,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  if (req.method !== 'GET' && req.method !== 'HEAD') return say(res, 405, 'text/plain', 'GET only\n')
  const path = req.url?.split('?', 1)[0]
  if (path === '/health/live') return say(res, 200, 'text/plain', 'alive\n')
  if (path === '/health/ready') {
    const readiness = await health.readiness()
    return say(res, readiness.is_ready ? 200 : 503, 'application/json', `${JSON.stringify(readiness)}\n`)
  }
  if (path !== '/metrics') return say(res, 404, 'text/plain', '/metrics, /health/live, /health/ready\n')
  if (token !== null && !isSame(req.headers.authorization ?? '', `Bearer ${token}`)) {
    res.setHeader('www-authenticate', 'Bearer')
    return say(res, 401, 'text/plain', 'Authorization: Bearer with MUSTER_METRICS_TOKEN\n')
  }
  const { type, text } = await metrics.text()
  say(res, 200, type, text)
}

function say(res: ServerResponse, status: number, type: string, text: string): void {
  res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(one!, other!)
}
