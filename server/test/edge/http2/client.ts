// A client of HTTP/2 for tests: a connection of Node's own client, and requests that are read to their end.
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import type { TestContext } from 'node:test'

export type Http2Response = { status: number; headers: IncomingHttpHeaders; body: Buffer; error: string | null }

/** Connects to the edge as a client that has looked up `host`. */
export async function connectHttp2(t: TestContext, port: number, host = 'localhost'): Promise<ClientHttp2Session> {
  const session = connect(`https://${host}:${port}`, {
    ...{ host: '127.0.0.1', servername: host, rejectUnauthorized: false },
    lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }] as never),
  } as Parameters<typeof connect>[1])
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** Sends a request. `body`: null: the stream ends with the head. */
export function begin(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  has_body = false,
): ClientHttp2Stream {
  const stream = session.request(headers, { endStream: !has_body })
  stream.on('error', () => {})
  return stream
}

export async function ask(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  body: string | Buffer | null = null,
): Promise<Http2Response> {
  const stream = begin(session, headers, body !== null)
  if (body !== null) stream.end(body)
  return read(stream)
}

/** Resolves at the end of the stream, also of one that was reset: then with its error. */
export async function read(stream: ClientHttp2Stream): Promise<Http2Response> {
  let headers: IncomingHttpHeaders & { ':status'?: number } = {}
  let error: string | null = null
  const chunks: Buffer[] = []
  stream.on('response', (received) => {
    headers = received
  })
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('error', ({ message }: Error) => {
    error = message
  })
  if (!stream.closed || !stream.destroyed) await once(stream, 'close').catch(() => {})
  return { status: headers[':status'] ?? 0, headers, body: Buffer.concat(chunks), error }
}
