// An edge as a process of its own, for tests that limit the resources of a process, or that replace an edge by another one. It
// prints its port, and runs until its standard input ends, or a successor has everything. For a message over IPC it replies with the bytes in use after a garbage collection; this needs
// --expose-gc.
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { readConfig } from '../../src/config/read-config.ts'
import { openContext } from '../../src/context.ts'
import { startEdge } from '../../src/edge/start.ts'

const COLLECTIONS = 4
const COLLECTION_MS = 50

const ctx = await openContext(readConfig(process.env))
const edge = await startEdge(ctx)
process.stdout.write(`${new URL(edge.address ?? '').port}\n`)
process.on('message', async () => {
  // The memory of a collected buffer is freed a moment later.
  for (let count = 0; count < COLLECTIONS; count++) {
    globalThis.gc!()
    await setTimeout(COLLECTION_MS)
  }
  const { heapUsed, external } = process.memoryUsage()
  process.send!(heapUsed + external)
})
process.stdin.resume()
await Promise.race([once(process.stdin, 'end'), edge.retired ?? new Promise(() => {})])
await edge.stop({ end_lobbies: false })
await ctx.close()
process.stdin.destroy()
process.disconnect?.()
