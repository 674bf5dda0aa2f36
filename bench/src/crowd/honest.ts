// Honest players: finds at a steady rate, each over a new connection from one of many addresses. An attack locks out new
// players first. A latency counts from the time when the find was due, and includes the connection.
import { connect } from 'node:net'

export type Honest = { latencies_ms: number[]; refused: Record<string, number> }

const ADDRESSES = 200
const ANSWER_MS_MAX = 30_000
const addressOf = (player: number): string => `127.0.60.${1 + (player % ADDRESSES)}`

export async function findSteadily(
  { port, request }: { port: number; request: Buffer },
  { per_second, seconds }: { per_second: number; seconds: number },
): Promise<Honest> {
  const honest: Honest = { latencies_ms: [], refused: {} }
  const started = performance.now()
  const finds: Promise<void>[] = []
  for (let count = 0; count < per_second * seconds; count++) {
    const due_at = started + (count / per_second) * 1_000
    const early_ms = due_at - performance.now()
    if (early_ms > 0) await new Promise((resolve) => setTimeout(resolve, early_ms))
    finds.push(
      findOnce(port, request, addressOf(count)).then((outcome) => {
        if (outcome === '200') honest.latencies_ms.push(performance.now() - due_at)
        else honest.refused[outcome] = (honest.refused[outcome] ?? 0) + 1
      }),
    )
  }
  await Promise.all(finds)
  return honest
}

/** The status of the response, or the reason why there is none. */
function findOnce(port: number, request: Buffer, localAddress: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
  let response = ''
  socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy(new Error('timeout')))
  socket.once('connect', () => socket.write(request))
  socket.on('data', (bytes) => {
    response += bytes.toString('latin1')
    const head_end = response.indexOf('\r\n\r\n')
    const length = Number(/^content-length: (\d+)/im.exec(response)?.[1] ?? Number.NaN)
    if (head_end === -1 || response.length < head_end + 4 + length) return
    resolve(response.slice(9, 12))
    socket.destroy()
  })
  socket.on('error', (error) => resolve(error.message))
  socket.on('close', () => resolve('closed'))
  return promise
}
