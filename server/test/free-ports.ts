// Ports for tests. A platform that is restarted must find its ports free again while others run beside it,
// so they are none of those that the system gives to whoever asks for just any.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that the system hands out, and below those that belong to the edge. */
const PORT_MIN = 10_000
const PORT_MAX = 26_000
const PORT_ATTEMPTS_MAX = 1_000

/** Ports that nobody uses now; another program may still take one before it is listened at. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let attempt = 0; attempt < PORT_ATTEMPTS_MAX && ports.length < count; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX)
    if (!ports.includes(port) && (await isFree(port))) ports.push(port)
  }
  if (ports.length < count) throw new Error('No free ports were found.')
  return ports
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const isBound = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  await new Promise((resolve) => server.close(resolve))
  return isBound
}
