// The head of a backend's response as the client receives it, whichever way it came: over HTTP or over a trunk.
import { headerOf, READABLE_LINE } from '@musterhost/contract/edge'
import { readForwardedHead } from '../../observe/forwarded-ray.ts'
import { type Body, createBody } from '../http/body.ts'
import type { Framing } from '../http/forwarded-lines.ts'
import { connectionLines } from '../http/response.ts'
import type { Ticks } from '../http/ticks.ts'
import type { ForwardedRequest } from './forwarded-request.ts'

export type StartedHead = {
  status: number
  reason: string
  lines: string
  framing: Framing
  has_date: boolean
  ray_kept: string | null
  shard: number | null
}

/** Returns the head as text, and how its body is read and written. Nothing is written yet. */
export function startResponse(
  { exchange, backend }: ForwardedRequest,
  head: StartedHead,
  ticks: Ticks,
): { text: string; body: Body; to_chunks: boolean } {
  const { framing } = head
  const has_length = framing === 'none' || typeof framing === 'number'
  const to_chunks = !has_length && !exchange.head.is_version_1_0
  if (!has_length && !to_chunks) {
    exchange.keeps_alive = false
    exchange.is_until_end = true
  }
  exchange.is_response_begun = true
  readForwardedHead(exchange.ray, head.ray_kept)
  if (head.shard !== null) backend.learnShard?.(exchange, head.shard)
  const date = head.has_date ? '' : ticks.date_line
  const chunks = to_chunks ? 'Transfer-Encoding: chunked\r\n' : ''
  const is_silent = exchange.player_lines !== '' && headerOf(head, 'access-control-allow-origin') === undefined
  const cors = is_silent ? READABLE_LINE : ''
  const lines = `${head.lines}${backend.response_added}${cors}${date}${chunks}${connectionLines(exchange)}`
  const text = `HTTP/1.1 ${head.status} ${head.reason}\r\n${lines}\r\n`
  return { text, body: createBody(framing), to_chunks }
}
