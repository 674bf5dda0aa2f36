// A cheap load generator: keep-alive connections over plain sockets, one request under way on each. It reads only as much
// of a response as it needs to find the end. It runs in the bench's own process, on the machine that it measures.
import { connect, type Socket } from 'node:net'

export type Target = {
  port: number
  /** A whole request, which each connection repeats. */
  request: Buffer
  /** The requests of single connections, where they differ. */
  requestOf?: (connection: number) => Buffer
}

export type Answer = { status: number; body: Buffer }

const HEADER_END = Buffer.from('\r\n\r\n')

type Connection = { socket: Socket; ask: () => Promise<Answer> }

async function openConnection(target: Target, connection: number): Promise<Connection> {
  const request = target.requestOf?.(connection) ?? target.request
  const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  let received: Buffer = Buffer.alloc(0)
  let waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | null = null
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const head_end = received.indexOf(HEADER_END)
    if (head_end === -1) return
    const head = received.toString('latin1', 0, head_end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN)
    if (!Number.isInteger(length)) throw new Error(`a response without a length:\n${head}`)
    if (received.length < head_end + 4 + length) return
    const body = received.subarray(head_end + 4, head_end + 4 + length)
    received = Buffer.alloc(0)
    const asked = waiting
    waiting = null
    asked?.resolve({ status: Number(head.slice(9, 12)), body })
  })
  socket.on('close', () => waiting?.reject(new Error('the connection was closed')))
  return {
    socket,
    ask: () =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('the connection was closed'))
        waiting = { resolve, reject }
        socket.write(request)
      }),
  }
}

export type Round = { per_second: number; answers: Answer[] }

/** Sends `count` requests over `connections` connections, each as soon as the last response has arrived. */
export async function runRound(target: Target, options: { count: number; connections: number }): Promise<Round> {
  const connections = await Promise.all(
    Array.from({ length: options.connections }, (_, index) => openConnection(target, index)),
  )
  const answers: Answer[] = []
  let sent = 0
  const started = performance.now()
  await Promise.all(
    connections.map(async ({ ask }) => {
      while (sent < options.count) {
        sent++
        answers.push(await ask())
      }
    }),
  )
  const elapsed_ms = performance.now() - started
  for (const { socket } of connections) socket.destroy()
  return { per_second: (options.count / elapsed_ms) * 1_000, answers }
}

/**
 * Sends requests at a steady rate, however long responses take. A latency counts from the time when the request was due,
 * so no delay is omitted. `ends_ms`: when each request ended, by `performance.now()`.
 */
export async function runSteadily(
  target: Target,
  options: { per_second: number; seconds: number; connections: number },
): Promise<{ latencies_ms: number[]; ends_ms: number[]; answers: Answer[] }> {
  const idle = await Promise.all(
    Array.from({ length: options.connections }, (_, index) => openConnection(target, index)),
  )
  const all = [...idle]
  const latencies_ms: number[] = []
  const ends_ms: number[] = []
  const answers: Answer[] = []
  const total = options.per_second * options.seconds
  const started = performance.now()
  await new Promise<void>((resolve, reject) => {
    let sent = 0
    const due: number[] = []
    const pump = (): void => {
      const now = performance.now()
      while (sent < total && started + (sent / options.per_second) * 1_000 <= now) {
        due.push(started + (sent / options.per_second) * 1_000)
        sent++
      }
      // The one that was idle longest: a server closes idle connections.
      while (due.length > 0 && idle.length > 0) serve(idle.shift()!, due.shift()!)
      if (answers.length === total) resolve()
      else setTimeout(pump, 1)
    }
    const serve = (connection: Connection, due_at: number): void => {
      connection.ask().then((answer) => {
        const end_ms = performance.now()
        latencies_ms.push(end_ms - due_at)
        ends_ms.push(end_ms)
        answers.push(answer)
        idle.push(connection)
      }, reject)
    }
    pump()
  })
  for (const { socket } of all) socket.destroy()
  return { latencies_ms, ends_ms, answers }
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

/** The rank interval of the median (binomial, 95 %). A noisy machine makes it wider. */
export function boundsOfMedian(values: readonly number[]): [least: number, most: number] {
  const sorted = values.toSorted((a, b) => a - b)
  const reach = Math.ceil(0.98 * Math.sqrt(sorted.length))
  const middle = Math.floor(sorted.length / 2)
  return [sorted[middle - reach] ?? Number.NaN, sorted[middle + reach] ?? Number.NaN]
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

export function postRequest(path: string, headers: Record<string, string>, body: unknown): Buffer {
  const text = JSON.stringify(body)
  const lines = Object.entries({
    host: 'localhost',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
}
