// Makes one connection of a link: TCP, TLS where the address is https, an HTTP upgrade, and the link's own TLS inside. Only
// the inner TLS proves the platform, so whatever certificate the outer one shows is accepted.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { bareHost } from '../../text/bare-host.ts'
import { type ConnectionKind, HANDSHAKE_MS_MAX, LINK_PATH } from '../protocol.ts'

/** Bytes of the head of the response to the upgrade. */
const HEAD_BYTES_MAX = 16 * 1024
const HEAD_END = '\r\n\r\n'
const KEEP_ALIVE_MS = 10_000

/** `tls`: how the platform is recognised, and the node's own certificate. */
type DialTarget = { url: URL; tls: ConnectionOptions }

/** Throws an Error with a sentence for the operator. */
export async function dial({ url, tls }: DialTarget, kind: ConnectionKind): Promise<TLSSocket> {
  const signal = AbortSignal.timeout(HANDSHAKE_MS_MAX)
  const opened: Socket[] = []
  try {
    const outer = await openOuter(url, opened, signal)
    await upgrade(url, outer, signal)
    const inner = connectTls({ ...tls, socket: outer, ALPNProtocols: [kind], minVersion: 'TLSv1.3' })
    opened.push(inner)
    await once(inner, 'secureConnect', { signal })
    inner.on('error', () => {})
    return inner
  } catch (error) {
    for (const socket of opened) socket.destroy()
    if (signal.aborted) throw new Error(`${url.origin} does not respond within ${HANDSHAKE_MS_MAX / 1_000} s.`)
    throw error
  }
}

async function openOuter(url: URL, opened: Socket[], signal: AbortSignal): Promise<Socket> {
  const is_secure = url.protocol === 'https:'
  const host = bareHost(url.hostname)
  const port = Number(url.port) || (is_secure ? 443 : 80)
  const raw = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS })
  opened.push(raw)
  raw.on('error', () => {})
  await once(raw, 'connect', { signal })
  if (!is_secure) return raw
  const secured = connectTls({
    socket: raw,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
    ...(isIP(host) === 0 && { servername: host }),
  })
  opened.push(secured)
  await once(secured, 'secureConnect', { signal })
  secured.on('error', () => {})
  return secured
}

async function upgrade(url: URL, socket: Socket, signal: AbortSignal): Promise<void> {
  socket.write(
    `GET ${LINK_PATH} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  )
  const head = await readHead(socket, signal)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0)
  if (status !== 101) {
    const why = status >= 500 ? 'it does not accept links now' : 'it is no Muster platform, or an older release'
    throw new Error(`${url.origin} responds with status ${status}: ${why}.`)
  }
}

/** The platform sends nothing after the head before the first bytes of the node. */
async function readHead(socket: Socket, signal: AbortSignal): Promise<string> {
  let head = ''
  while (!head.includes(HEAD_END)) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) head += chunk.toString('latin1')
    else if (socket.readableEnded || socket.destroyed)
      throw new Error('The connection was closed before it was upgraded.')
    else await Promise.race([once(socket, 'readable', { signal }), once(socket, 'close', { signal })])
    if (head.length > HEAD_BYTES_MAX) throw new Error('The response to the upgrade is too long.')
  }
  return head
}
