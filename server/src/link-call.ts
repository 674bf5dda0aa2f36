// Calls the platform over the unix socket of a node's link (links/node/local-sockets.ts).
import { type IncomingMessage, request } from 'node:http'

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
