// The ceiling: Fastify with the same schemas, bodies of the same size in and out, and no work in between. A program of
// its own, so that it has a process like the matchmaker has; it tells its port over the IPC channel.
import { findLobby, type ResponseOf } from '@muster/contract'
import Fastify from 'fastify'

const answer = JSON.parse(process.argv[2] ?? '{}') as ResponseOf<typeof findLobby>

const app = Fastify({ logger: false, ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })
app.post(
  findLobby.path,
  { schema: { body: findLobby.body, response: { 200: findLobby.response } } },
  async () => answer,
)
await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ port: (app.server.address() as { port: number }).port })
process.on('disconnect', () => void app.close())
