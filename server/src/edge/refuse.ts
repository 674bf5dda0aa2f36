// How the edge itself says no: the same five-member body as everywhere, with a ray id, whether the refusal is an
// ordinary response or is written to a connection whose bytes the HTTP parser gave up on.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError, errorBody } from '@muster/contract'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { DRAIN_BYTES_MAX, DRAIN_MS_MAX } from './limits.ts'

export type Refuse = {
  /** Answers a request, with `more` headers. Anything that is not an ApiError is logged and leaves as INTERNAL_ERROR. */
  request: (req: IncomingMessage, res: ServerResponse, error: unknown, more?: readonly string[]) => void
  /** Answers bytes that were no request, and closes. */
  socket: (socket: Socket, error: ApiError) => void
}

/** `mainUrl` is asked when there is something to refuse: the port may not be known before. */
export function createRefuse(ctx: Context, mainUrl: () => string): Refuse {
  const answerOf = (error: unknown) => {
    const ray_id = newId(ctx.now())
    if (!(error instanceof ApiError)) ctx.log.error({ err: error, ray_id }, 'a request failed at the edge')
    const refusal = error instanceof ApiError ? error : new ApiError('INTERNAL_ERROR')
    const body = JSON.stringify(errorBody(refusal, { ray_id, main_url: mainUrl() }))
    const headers = [
      ...['content-type', 'application/json; charset=utf-8'],
      ...['content-length', String(Buffer.byteLength(body))],
      ...['cache-control', 'no-store'],
      ...['x-content-type-options', 'nosniff'],
      ...['x-ray-id', ray_id],
    ]
    if (refusal.retry_after_s !== undefined) headers.push('retry-after', String(refusal.retry_after_s))
    return { status: refusal.status, headers, body }
  }

  return {
    request: (req, res, error, more = []) => {
      if (res.headersSent || res.destroyed) {
        res.destroy()
        return
      }
      const { status, headers, body } = answerOf(error)
      // After what was not well-formed nobody knows where the next request begins.
      if (status === 400 || status === 431) res.shouldKeepAlive = false
      res.writeHead(status, [...headers, ...more])
      res.write(body)
      endAfterBody(req, res)
    },
    socket: (socket, error) => {
      if (!socket.writable) {
        socket.destroy()
        return
      }
      const { status, headers, body } = answerOf(error)
      const lines = [`HTTP/1.1 ${status} ${error.code}`]
      for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`)
      socket.write(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`)
      socket.destroySoon()
    },
  }
}

/**
 * Ends a response whose request may still be sending. What is left of the body is read for a while and thrown away:
 * closing on it would reset the connection, and the sender would never read the answer.
 */
export function endAfterBody(req: IncomingMessage, res: ServerResponse): void {
  if (req.complete) {
    req.resume()
    res.end()
    return
  }
  let left = DRAIN_BYTES_MAX
  const giveUp = () => {
    req.removeListener('data', onData)
    res.end()
    req.socket.destroySoon()
  }
  const onData = (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) giveUp()
  }
  const timer = setTimeout(giveUp, DRAIN_MS_MAX)
  req.removeAllListeners('data')
  req.on('data', onData)
  req.once('end', () => res.end())
  res.once('close', () => clearTimeout(timer))
  req.resume()
}
