// What players of the echo server do: they send a text to a port of its lobby, and read the reply.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { WebSocket } from 'ws'

const REPLY_MS_MAX = 5_000

/** Over a WebSocket. The reply begins with the process id of the server. */
export async function talk(url: string, text: string): Promise<string> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  // `once` reports it; what comes after is of no use.
  socket.on('error', () => {})
  try {
    await once(socket, 'open', { signal: AbortSignal.timeout(REPLY_MS_MAX) })
    socket.send(text)
    const [reply] = (await once(socket, 'message', { signal: AbortSignal.timeout(REPLY_MS_MAX) })) as [Buffer]
    return reply.toString()
  } finally {
    socket.terminate()
  }
}

export type RawPort = { hostname: string; port: number }

export async function talkTcp({ hostname, port }: RawPort, text: string): Promise<string> {
  const socket = connect(port, hostname)
  try {
    socket.write(text)
    const [reply] = (await once(socket, 'data', { signal: AbortSignal.timeout(REPLY_MS_MAX) })) as [Buffer]
    return reply.toString()
  } finally {
    socket.destroy()
  }
}

export async function talkUdp({ hostname, port }: RawPort, text: string): Promise<string> {
  const socket = createSocket('udp4')
  try {
    socket.send(text, port, hostname)
    const [reply] = (await once(socket, 'message', { signal: AbortSignal.timeout(REPLY_MS_MAX) })) as [Buffer]
    return reply.toString()
  } finally {
    socket.close()
  }
}
