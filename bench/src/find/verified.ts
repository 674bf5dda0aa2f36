// A game that is asked about every player before he gets his seat. Its endpoint is a server of this process that says yes.
// The question itself is none of the platform's time, so the ceiling asks it as well: an equal-sized Fastify POST that asks
// the same endpoint the same question, once a request and by the platform's own code (an address looked at and pinned, a
// connection for each call). What is left between the two is what holding, asking and seating cost.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { VersionConfig } from '@muster/contract'

/** Where the ceiling that asks answers. */
export const ASKING_PATH = '/asking'

type FindAction = NonNullable<
  NonNullable<NonNullable<VersionConfig['matchmaker']>['game_modes'][string]['actions']>['find']
>

export type Endpoint = {
  /** What makes a platform call it. */
  settings: Record<string, string>
  action: FindAction
  /** What it was asked last. */
  question: () => string
  stop: () => void
}

export async function startEndpoint(): Promise<Endpoint> {
  let question = ''
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      question = Buffer.concat(chunks).toString()
      res.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return {
    settings: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' },
    action: { enabled: true, verification_config: { url, headers: {} } },
    question: () => question,
    stop: () => void server.close(),
  }
}
