// Calls the platform over the unix socket of a node's link (links/node/local-sockets.ts).
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** Without a byte for this time, a call has failed. */
const SILENCE_MS_MAX = 30_000

export type LinkCall = {
  method: 'GET' | 'HEAD' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: string
}

/** `link`: the path of the socket. Rejects with the system's error when the link does not respond. */
export function callLink(link: string, { method, path, headers = {}, body }: LinkCall): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: link, method, path, headers, timeout: SILENCE_MS_MAX }, resolve)
    call.once('timeout', () => call.destroy(new Error('The platform does not respond over the link.')))
    call.once('error', reject)
    call.end(body)
  })
}

/** Posts JSON, and returns that of the response. Throws `refusal` with the platform's reason for any status but 200. */
export async function postOverLink<T>(
  link: string,
  { path, body, refusal }: { path: string; body: object; refusal: string },
): Promise<T> {
  const response = await callLink(link, { method: 'POST', path, body: JSON.stringify(body) })
  const received = await text(response)
  if (response.statusCode !== 200) throw new Error(`${refusal}: ${received}`)
  return JSON.parse(received) as T
}
