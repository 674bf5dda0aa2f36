// An edge as a process of its own, for tests that limit what a process may have. It prints its port and lives until its
// standard input ends.
import { once } from 'node:events'
import { readConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { startEdge } from '../../src/edge/start.ts'

const ctx = await openContext(readConfig(process.env))
const edge = await startEdge(ctx)
process.stdout.write(`${new URL(edge.address ?? '').port}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
await edge.stop({ end_lobbies: false })
await ctx.close()
