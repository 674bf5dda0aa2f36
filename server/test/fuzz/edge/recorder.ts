// A backend that records each whole request and the bytes that it came in, and answers with the request's number.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { Reading, ReadRequest } from './read.ts'

export class Recorder {
  requests: ReadRequest[] = []
  /** Bytes that are no request. */
  faults: string[] = []
  readonly open = new Set<Socket>()
  readonly #read: (bytes: string) => Reading<ReadRequest>
  #received = new Map<Socket, string>()

  constructor(read: (bytes: string) => Reading<ReadRequest>) {
    this.#read = read
  }

  /** Forgets what came until now. Connections that wait for their next request stay. */
  clear(): void {
    this.requests = []
    this.faults = []
    this.#received = new Map()
  }

  /** The bytes of all connections since `clear`, one after the other; a request that broke off is the last. */
  received(): string {
    const { whole = [], broken = [] } = Object.groupBy(this.#received.values(), (bytes) =>
      this.#endsWithRequest(bytes) ? 'whole' : 'broken',
    )
    return [...whole, ...broken].join('')
  }

  #endsWithRequest(bytes: string): boolean {
    let rest = bytes
    while (rest !== '') {
      const reading = this.#read(rest)
      if (typeof reading === 'string' || 'fault' in reading) return false
      rest = rest.slice(reading.length)
    }
    return true
  }

  serve(socket: Socket): void {
    let unread = ''
    this.open.add(socket)
    socket.on('close', () => this.open.delete(socket))
    socket.on('error', () => {})
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      unread += chunk
      this.#received.set(socket, (this.#received.get(socket) ?? '') + chunk)
      for (;;) {
        const reading = unread === '' ? 'incomplete' : this.#read(unread)
        if (reading === 'incomplete') return
        if ('fault' in reading) {
          this.faults.push(reading.fault)
          socket.destroy()
          return
        }
        unread = unread.slice(reading.length)
        const body = String(this.requests.push(reading.message) - 1)
        const is_head = reading.message.method === 'HEAD'
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${is_head ? '' : body}`)
      }
    })
  }
}

export async function startRecorder(
  t: TestContext,
  address: { path: string } | { port: 0; host: string },
  read: (bytes: string) => Reading<ReadRequest>,
): Promise<Recorder & { port: number }> {
  const recorder = new Recorder(read)
  const server = createServer((socket) => recorder.serve(socket))
  server.listen(address)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of recorder.open) socket.destroy()
  })
  const port = 'port' in address ? (server.address() as AddressInfo).port : 0
  return Object.assign(recorder, { port })
}
