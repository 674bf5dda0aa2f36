// A backend with a parser of its own, which follows RFC 9112 strictly: a request has one framing, and all bytes after it
// belong to another request.
import assert from 'node:assert'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export type Strict = { port: number; requests: string[]; open: Set<Socket> }

/** Stores each whole request, and responds with `ok`. */
export async function startStrictBackend(t: TestContext): Promise<Strict> {
  const requests: string[] = []
  const server = await startBytes(t, (socket) => {
    let bytes = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      bytes += chunk
      for (let length = requestLength(bytes); length !== null; length = requestLength(bytes)) {
        const request = bytes.slice(0, length)
        requests.push(request)
        bytes = bytes.slice(length)
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${request.startsWith('HEAD ') ? '' : 'ok'}`)
      }
    })
  })
  return { ...server, requests }
}

/** A backend that handles raw bytes. */
export async function startBytes(
  t: TestContext,
  onConnection: (socket: Socket) => void,
): Promise<{ port: number; open: Set<Socket> }> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, open }
}

/** Returns the length of the first request; null when it is incomplete. */
export function requestLength(bytes: string): number | null {
  const head_end = bytes.indexOf('\r\n\r\n')
  if (head_end === -1) return null
  const head = bytes.slice(0, head_end)
  const lengths = [...head.matchAll(/^content-length: *(\d+)\r?$/gim)]
  const codings = [...head.matchAll(/^transfer-encoding: *(.*?)\r?$/gim)]
  assert.ok(lengths.length + codings.length <= 1, `two framings: ${head}`)
  const body = head_end + 4
  if (codings.length === 1) {
    assert.equal(codings[0]?.[1], 'chunked')
    return chunksEnd(bytes, body)
  }
  const end = body + Number(lengths[0]?.[1] ?? 0)
  return bytes.length < end ? null : end
}

/** The edge writes sizes in plain hexadecimal, and neither extensions nor trailers. */
function chunksEnd(bytes: string, start: number): number | null {
  for (let at = start; ; ) {
    const line_end = bytes.indexOf('\r\n', at)
    if (line_end === -1) return null
    const size = bytes.slice(at, line_end)
    assert.match(size, /^[0-9a-f]+$/)
    at = line_end + 2 + Number.parseInt(size, 16) + 2
    if (bytes.length < at) return null
    assert.equal(bytes.slice(at - 2, at), '\r\n')
    if (size === '0') return at
  }
}

/** Returns the body of a received request, without its framing. */
export function bodyOf(request: string): string {
  const start = request.indexOf('\r\n\r\n') + 4
  if (!/^transfer-encoding:/im.test(request.slice(0, start))) return request.slice(start)
  let body = ''
  for (let at = start; ; ) {
    const line_end = request.indexOf('\r\n', at)
    const size = Number.parseInt(request.slice(at, line_end), 16)
    if (size === 0) return body
    body += request.slice(line_end + 2, line_end + 2 + size)
    at = line_end + 2 + size + 2
  }
}
