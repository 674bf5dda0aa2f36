// Joins a stream of a node to PostgreSQL. The first message must name the node's own role, so that a node cannot try the
// passwords of other roles. Everything after it is between the node and PostgreSQL.
import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import { connect, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import pg from 'pg'
import type { Context } from '../../context.ts'
import { explainTls, NO_TLS, readTarget } from '../../database/tls.ts'
import { serversOf } from '../../text/database-url.ts'
import { joinStreams, LinkRefusal } from '../streams.ts'

/** Bytes of a startup message; PostgreSQL's own limit. */
const STARTUP_BYTES_MAX = 10_000
const LENGTH_BYTES = 4
/** Version 3 of the protocol, in the upper half of the number. Requests for TLS or a cancellation have another number. */
const PROTOCOL_MAJOR = 3
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const SSL_ACCEPTED = 'S'

/** Throws a LinkRefusal for another role than `role`. */
export async function bridgeDatabase(
  { config, primary }: Pick<Context, 'config' | 'primary'>,
  role: string,
  stream: ServerHttp2Stream,
): Promise<void> {
  stream.respond({ ':status': 200 })
  const startup = await readStartup(stream)
  if (!asksFor(startup, role)) throw new LinkRefusal('DATABASE_ROLE_OTHER', 'This node has another database role.')
  const socket = await connectDatabase(config.database_url!, await primary.find())
  socket.write(startup)
  joinStreams(stream, socket)
}

/** Returns the startup message, and leaves nothing else unread, because the client waits for its response. */
async function readStartup(stream: ServerHttp2Stream): Promise<Buffer> {
  let bytes = Buffer.alloc(0)
  for (;;) {
    const chunk = stream.read() as Buffer | null
    if (chunk === null) {
      if (stream.readableEnded || stream.destroyed)
        throw new LinkRefusal('BAD_REQUEST', 'There is no startup message.', 400)
      await Promise.race([once(stream, 'readable'), once(stream, 'close')])
      continue
    }
    bytes = Buffer.concat([bytes, chunk])
    const length = bytes.length < LENGTH_BYTES ? null : bytes.readUInt32BE(0)
    if (bytes.length > STARTUP_BYTES_MAX || (length !== null && length > STARTUP_BYTES_MAX)) {
      throw new LinkRefusal('BAD_REQUEST', 'The startup message is too long.', 400)
    }
    if (length !== null && bytes.length >= length) return bytes
  }
}

/** Whether the message asks for this role, and names no other one beside it. */
function asksFor(startup: Buffer, role: string): boolean {
  if (startup.length < 2 * LENGTH_BYTES || startup.readUInt16BE(LENGTH_BYTES) !== PROTOCOL_MAJOR) return false
  const parts = startup.toString('utf8', 2 * LENGTH_BYTES, startup.readUInt32BE(0)).split('\0')
  // Names and values take turns.
  const users = parts.filter((_, index) => index % 2 === 1 && parts[index - 1] === 'user')
  return users.length === 1 && users[0] === role
}

/** `server`: the one that accepts writes; null: the URL names only one. */
async function connectDatabase(database_url: string, server: { host: string; port: number } | null): Promise<Socket> {
  const { ssl, sslnegotiation, ...rest } = readTarget(serversOf(database_url)[0]!.url)
  const only = new pg.Client(rest)
  const { host, port } = server ?? only
  const target = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port, noDelay: true }
  const socket = connect({ ...target, allowHalfOpen: true })
  await once(socket, 'connect')
  if (!ssl) return socket
  try {
    if (sslnegotiation !== 'direct') await askForTls(socket)
    return await secure(socket, host, { ssl, is_direct: sslnegotiation === 'direct' })
  } catch (error) {
    socket.destroy()
    throw explainTls(error, { host, port }, 'DATABASE_URL')
  }
}

async function askForTls(socket: Socket): Promise<void> {
  socket.write(SSL_REQUEST)
  const response = (await Promise.race([once(socket, 'data'), once(socket, 'end')])) as [Buffer?]
  socket.pause()
  if (response[0]?.toString('latin1') !== SSL_ACCEPTED) throw new Error(NO_TLS)
}

type Tls = { ssl: true | ConnectionOptions; is_direct: boolean }

async function secure(socket: Socket, host: string, { ssl, is_direct }: Tls): Promise<Socket> {
  const own = typeof ssl === 'object' ? ssl : {}
  const secured = connectTls({
    socket,
    host,
    ...own,
    // The driver hides it from listings, and from copies.
    ...(own.key !== undefined && { key: own.key }),
    // An address is no server name (RFC 6066, section 3).
    ...(isIP(host) === 0 && { servername: host }),
    ...(is_direct && { ALPNProtocols: ['postgresql'] }),
  })
  await once(secured, 'secureConnect')
  return secured
}
