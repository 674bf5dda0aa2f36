// The ceilings: Fastify with the same schemas, bodies of the same size in both directions, and no other work. A second one
// also calls the endpoint of a game (verified.ts). They run in their own process, like the matchmaker. The process reports
// its port over the IPC channel.
import { findLobby, type ResponseOf } from '@musterhost/contract'
import { readConfig } from '@musterhost/server/config/read-config'
import { createAskGame } from '@musterhost/server/matchmaker/seats/verification/ask-game'
import { createLog } from '@musterhost/server/observe/log'
import { createMetrics } from '@musterhost/server/observe/metrics'
import Fastify from 'fastify'
import { ASKING_PATH } from './verified.ts'

/** The argument of the peer, as JSON. */
export type PeerOrder = {
  answer: ResponseOf<typeof findLobby>
  url: string
  question: string
  settings: Record<string, string>
}

const QUESTION_MS_MAX = 10_000

const { answer, url, question, settings } = JSON.parse(process.argv[2] ?? '{}') as PeerOrder
const askGame = createAskGame({
  config: readConfig(settings),
  log: createLog({ who: 'peer', level: 'warn' }),
  elapsed: () => Math.trunc(performance.now()),
  metrics: createMetrics({ roles: [] }),
})
const { namespace_id } = JSON.parse(question) as { namespace_id: string }
const endpoint = { url, headers: {} }
const onNotAsked = (): void => {}

const app = Fastify({ logger: false, ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })
const schema = { body: findLobby.body, response: { 200: findLobby.response } }
app.post(findLobby.path, { schema }, async () => answer)
app.post(ASKING_PATH, { schema }, async () => {
  const { signal } = new AbortController()
  await askGame({
    namespace_id,
    endpoint,
    body: question,
    timeout_ms: QUESTION_MS_MAX,
    signal,
    body_bytes_max: 0,
    onNotAsked,
  })
  return answer
})
await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ port: (app.server.address() as { port: number }).port })
process.on('disconnect', () => void app.close())
