// Players who stay: each sends numbered messages to the echo server and requires all of them back, in order.
import assert from 'node:assert'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../support/until.ts'
import type { RawPort } from './talk.ts'

const SEND_EVERY_MS = 5
const RECEIVED_MIN = 20

export type StayingFlow = {
  /** Resolves when further messages have come back. Throws when the flow was closed, or lost a byte. */
  requireAlive: () => Promise<void>
  /** Sends nothing more, and requires the last message back. Resolves with the number of messages. */
  finish: () => Promise<number>
}

type Connection = { send: (text: string) => void; close: () => void }
/** `onText`: what came back. `onFault`: the connection has ended. */
type Reader = { onText: (text: string) => void; onFault: (fault: string) => void }

/** The echo server reads one WebSocket message at a time, so the next one is sent when the last one is back. */
export async function stayOnWebSocket(t: TestContext, url: string): Promise<StayingFlow> {
  const { flow, reader } = createFlow({ in_flight_max: 1 })
  const socket = new WebSocket(url.replace('http', 'ws'))
  socket.on('error', () => {})
  await once(socket, 'open')
  // The reply begins with the process id of the server.
  socket.on('message', (data) => reader.onText(String(data).split(' ')[1]!))
  socket.on('close', (code) => reader.onFault(`the WebSocket was closed with ${code}`))
  t.after(() => socket.terminate())
  return flow({ send: (text) => socket.send(text), close: () => socket.terminate() })
}

export async function stayOnTcp(t: TestContext, { hostname, port }: RawPort): Promise<StayingFlow> {
  const { flow, reader } = createFlow({ in_flight_max: 1_000 })
  const socket = connect(port, hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  createInterface({ input: socket }).on('line', reader.onText)
  socket.on('close', () => reader.onFault('the TCP connection was closed'))
  t.after(() => socket.destroy())
  return flow({ send: (text) => socket.write(`${text}\n`), close: () => socket.destroy() })
}

function createFlow({ in_flight_max }: { in_flight_max: number }): {
  reader: Reader
  flow: (connection: Connection) => StayingFlow
} {
  let sent = 0
  let received = 0
  let fault: string | null = null
  const reader: Reader = {
    onText(text) {
      if (text !== String(received)) fault ??= `${text} came back instead of ${received}`
      received++
    },
    onFault(text) {
      fault ??= `${text} after ${received} messages`
    },
  }
  const flow = ({ send, close }: Connection): StayingFlow => {
    const timer = setInterval(() => {
      if (sent - received < in_flight_max && fault === null) send(String(sent++))
    }, SEND_EVERY_MS)
    return {
      async requireAlive() {
        const before = received
        await until('messages to come back', () => fault !== null || received >= before + RECEIVED_MIN)
        assert.strictEqual(fault, null)
      },
      async finish() {
        clearInterval(timer)
        await until('the last message', () => fault !== null || received === sent)
        assert.strictEqual(fault, null)
        close()
        return sent
      },
    }
  }
  return { reader, flow }
}
