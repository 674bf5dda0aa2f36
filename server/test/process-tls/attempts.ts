// What a client reaches at the internal port of a matchmaker, with one certificate or another.
import { connect as connectPlain, type Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { edgeProof } from '../../src/tokens/edge-proof.ts'
import type { Keys } from '../../src/tokens/keys.ts'
import { EDGE_PROOF_HEADER } from '../../src/wire/headers.ts'

const ATTEMPT_MS_MAX = 10_000

export type Target = { host: string; port: number }

/** A request that proves all that a header can prove. Returns the first line of the response; empty: there was none. */
export function attempt(target: Target, keys: Keys, tls: ConnectionOptions | null): Promise<string> {
  const proof = `${EDGE_PROOF_HEADER}: ${edgeProof(keys)}`
  const request = `GET /matchmaker/regions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${proof}\r\n\r\n`
  const socket: Socket = tls === null ? connectPlain(target) : connect({ ...target, rejectUnauthorized: false, ...tls })
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
  })
  socket.on('error', () => {})
  socket.write(request)
  socket.setTimeout(ATTEMPT_MS_MAX, () => socket.destroy())
  return new Promise((resolve) => socket.once('close', () => resolve(received.split('\r\n', 1)[0]!)))
}
