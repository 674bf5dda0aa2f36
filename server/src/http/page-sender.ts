// Pages that are the same for everybody. A page is made at its first request, compressed once, and has its hash as the entity
// tag: a client that has it receives 304.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants as zlib } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

export const HTML = 'text/html; charset=utf-8'
/** Takes a fifth of the time of quality 9, and the result is 7 % larger. */
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 6 } }

const pack = promisify<Buffer, object, Buffer>(brotliCompress)

type Page = { bytes: Buffer; packed: Buffer; etag: string }
/** `make` is called once for each path. The caller bounds the number of paths. */
export type MadePage = { path: string; type: string; make: () => string }
export type PageSender = (request: FastifyRequest, reply: FastifyReply, page: MadePage) => Promise<FastifyReply>

/** `policy`: the content security policy of the pages. */
export function createPageSender(policy: string): PageSender {
  const pages = new Map<string, Promise<Page>>()
  return async (request, reply, { path, type, make }) => {
    let page = pages.get(path)
    if (page === undefined) {
      page = prepare(make())
      pages.set(path, page)
    }
    const { bytes, packed, etag } = await page
    const takes_packed = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
    const tag = takes_packed ? `"${etag}-br"` : `"${etag}"`
    reply.headers({ ...pageHeaders(policy), vary: 'Accept-Encoding', etag: tag })
    if (request.headers['if-none-match'] === tag) return reply.code(304).send()
    if (takes_packed) reply.header('content-encoding', 'br')
    return reply.type(type).send(takes_packed ? packed : bytes)
  }
}

export function pageHeaders(policy: string): Record<string, string> {
  return {
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  }
}

async function prepare(text: string): Promise<Page> {
  const bytes = Buffer.from(text)
  return {
    bytes,
    packed: await pack(bytes, BROTLI),
    etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
  }
}
