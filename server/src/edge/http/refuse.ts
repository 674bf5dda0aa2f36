// The edge's own refusals: the same five-member body as everywhere, with a ray id. A refusal responds to a request, or is
// written to a connection whose bytes are not a request.
import { ApiError, errorBody } from '@musterhost/contract'
import { READABLE } from '@musterhost/contract/edge'
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import { RAY_HEADER } from '../../wire/headers.ts'
import type { ClientSocket } from './client-socket.ts'
import type { Exchange } from './exchange.ts'
import { linesOf } from './headers.ts'
import { breakResponse, sendResponse } from './response.ts'

export type Refuse = {
  /** Responds to a request, with `more` headers. An error that is no ApiError is logged and sent as INTERNAL_ERROR. */
  request: (exchange: Exchange, error: unknown, more?: readonly string[]) => void
  /** Responds to bytes that are not a whole request. The caller then ends the connection. */
  socket: (socket: ClientSocket, error: unknown, is_head: boolean) => void
}

/** `mainUrl` is called at each refusal: the port may not be known earlier. */
export function createRefuse(ctx: Context, mainUrl: () => string): Refuse {
  const responseOf = (error: unknown, ray_id: string) => {
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
      if (exchange.is_response_begun) {
        breakResponse(exchange)
        return
      }
      exchange.ray_id ??= newRayId()
      const { status, code, headers, body } = responseOf(error, exchange.ray_id)
      ctx.recorder.end(exchange.ray, code)
      // After a malformed request it is unknown where the next one begins.
      if (status === 400 || status === 431) exchange.keeps_alive = false
      const readable = exchange.lobby !== null || code === 'LOBBY_NOT_FOUND' ? READABLE : []
      sendResponse(exchange, status, [...headers, ...readable, ...more], body)
    },
    socket: (socket, error, is_head) => {
      if (!socket.writable) return
      const ray_id = newRayId()
      const { status, code, headers, body } = responseOf(error, ray_id)
      headers.push(RAY_HEADER, ray_id)
      socket.write(
        `HTTP/1.1 ${status} ${code}\r\n${linesOf(headers)}connection: close\r\n\r\n${is_head ? '' : body.toString('latin1')}`,
        'latin1',
      )
    },
  }
}
