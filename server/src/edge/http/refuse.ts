// How the edge itself says no: the same five-member body as everywhere, with a ray id, whether the refusal answers a
// request or is written to a connection whose bytes were none.
import type { Socket } from 'node:net'
import { ApiError, errorBody } from '@muster/contract'
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import { RAY_HEADER } from '../../tokens/edge-proof.ts'
import { answer, breakAnswer } from './answer.ts'
import type { Exchange } from './exchange.ts'
import { linesOf } from './head.ts'

export type Refuse = {
  /** Answers a request, with `more` headers. Anything that is not an ApiError is logged and leaves as INTERNAL_ERROR. */
  request: (exchange: Exchange, error: unknown, more?: readonly string[]) => void
  /** Responds to bytes that were no request, or not to their end; the connection is to be ended then. */
  socket: (socket: Socket, error: unknown, is_head: boolean) => void
}

/** `mainUrl` is asked when there is something to refuse: the port may not be known before. */
export function createRefuse(ctx: Context, mainUrl: () => string): Refuse {
  const answerOf = (error: unknown, ray_id: string) => {
    if (!(error instanceof ApiError)) ctx.log.error({ err: error, ray_id }, 'a request failed at the edge')
    const refusal = error instanceof ApiError ? error : new ApiError('INTERNAL_ERROR')
    const body = Buffer.from(JSON.stringify(errorBody(refusal, { ray_id, main_url: mainUrl() })))
    const headers = [
      ...['content-type', 'application/json; charset=utf-8'],
      ...['content-length', String(body.length)],
      ...['cache-control', 'no-store'],
      ...['x-content-type-options', 'nosniff'],
    ]
    if (refusal.retry_after_s !== undefined) headers.push('retry-after', String(refusal.retry_after_s))
    return { status: refusal.status, code: refusal.code, headers, body }
  }

  return {
    request: (exchange, error, more = []) => {
      if (exchange.is_over) return
      if (exchange.is_answering) {
        breakAnswer(exchange)
        return
      }
      exchange.ray_id ??= newRayId()
      const { status, code, headers, body } = answerOf(error, exchange.ray_id)
      ctx.recorder.end(exchange.ray, code)
      // After what was not well-formed nobody knows where the next request begins.
      if (status === 400 || status === 431) exchange.keeps_alive = false
      answer(exchange, status, [...headers, ...more], body)
    },
    socket: (socket, error, is_head) => {
      if (!socket.writable) return
      const ray_id = newRayId()
      const { status, code, headers, body } = answerOf(error, ray_id)
      headers.push(RAY_HEADER, ray_id)
      socket.write(
        `HTTP/1.1 ${status} ${code}\r\n${linesOf(headers)}connection: close\r\n\r\n${is_head ? '' : body.toString('latin1')}`,
        'latin1',
      )
    },
  }
}
