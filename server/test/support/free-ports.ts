// Ports for tests. A restarted platform must find its ports free again while other tests run. So they are outside the
// ephemeral ports and outside those of lobbies and of the edge, and no two processes of a run share one. Each process
// reserves a block of ports by listening on the first.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { LOBBY_PORTS } from '../../src/config/edge.ts'

/** Above 10080, to which `fetch` makes no request (Fetch standard, 2.9). */
const PORT_MIN = 10_100
const BLOCK_PORTS = 50
const BLOCKS = (LOBBY_PORTS.min - PORT_MIN) / BLOCK_PORTS
const BLOCK_ATTEMPTS_MAX = 1_000

/** Of this process, and its children's through it; a block that is used up is kept until the process ends. */
let block = { next: 0, end: 0 }

/** Ports that nobody uses, and that no test is given again; the later ones are higher, where they are of one block. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    if (block.next === block.end) block = await takeBlock()
    const port = block.next++
    const server = await listenAt(port)
    if (server === null) continue
    server.close()
    await once(server, 'close')
    ports.push(port)
  }
  return ports
}

async function takeBlock(): Promise<typeof block> {
  for (let attempt = 0; attempt < BLOCK_ATTEMPTS_MAX; attempt++) {
    const first = PORT_MIN + BLOCK_PORTS * randomInt(BLOCKS)
    const mark = await listenAt(first)
    if (mark === null) continue
    mark.unref()
    return { next: first + 1, end: first + BLOCK_PORTS }
  }
  throw new Error('Other processes have all the ports for tests.')
}

/** Null: somebody else does. */
async function listenAt(port: number): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve) => {
    server.once('error', () => resolve(null)).listen(port, '127.0.0.1', () => resolve(server))
  })
}
