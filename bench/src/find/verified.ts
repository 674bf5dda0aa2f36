// A game that verifies every player before the player gets a seat. Its endpoint is a server of this process that always
// accepts.
//
// The time of the call is not the platform's, so the ceiling makes the same call: an equal-sized Fastify POST that calls the
// same endpoint once per request, with the platform's own code. That code resolves and pins the address, and opens a
// connection for each call. The difference is the cost of the hold, the verification and the seat.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { VersionConfig } from '@musterhost/contract'

/** The path of the ceiling that calls the endpoint. */
export const ASKING_PATH = '/asking'

type FindAction = NonNullable<
  NonNullable<NonNullable<VersionConfig['matchmaker']>['game_modes'][string]['actions']>['find']
>

export type Endpoint = {
  /** The verification config that makes a platform call the endpoint. */
  settings: Record<string, string>
  action: FindAction
  /** The last request that it received. */
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
