// The API reference, and the picture of people without one. A page is made at its first request,
// compressed once, and has its hash as the entity tag: a client that has it receives 304.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants as zlib } from 'node:zlib'
import { ERRORS, type ErrorCode } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { sectionsOf } from '@musterhost/contract/sections'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import { AVATAR_PATH } from '../identity/constant-members.ts'
import { ERRORS_PATH, POLICY, REFERENCE_PATH, sectionPath } from './reference/frame.ts'
import { createReference } from './reference/pages.ts'

const OPENAPI = new URL('../../../contract/openapi.json', import.meta.url)
const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'
const SVG = 'image/svg+xml'
/** Compressing takes a tenth of a second, once. */
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 9 } }

const pack = promisify<Buffer, object, Buffer>(brotliCompress)

type Page = { bytes: Buffer; packed: Buffer; etag: string }

export async function registerPages(app: FastifyInstance, ctx: Context): Promise<void> {
  const openapi = await readFile(OPENAPI, 'utf8')
  const { version } = (JSON.parse(openapi) as { info: { version: string } }).info
  const reference = createReference({ main_url: mainUrl(ctx.config), version })
  const section_ids = new Set(sectionsOf(OPERATIONS).map(({ id }) => id))
  const pages = new Map<string, Promise<Page>>()

  /** `make` is called once for each path. The paths are those below, so their number is bounded. */
  async function send(
    request: FastifyRequest,
    reply: FastifyReply,
    { path, type, make }: { path: string; type: string; make: () => string },
  ): Promise<FastifyReply> {
    let page = pages.get(path)
    if (page === undefined) {
      page = prepare(make())
      pages.set(path, page)
    }
    const { bytes, packed, etag } = await page
    const takes_packed = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
    const tag = takes_packed ? `"${etag}-br"` : `"${etag}"`
    reply.headers({
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      etag: tag,
    })
    if (request.headers['if-none-match'] === tag) return reply.code(304).send()
    if (takes_packed) reply.header('content-encoding', 'br')
    return reply.type(type).send(takes_packed ? packed : bytes)
  }

  const serve = (path: string, type: string, make: () => string): void => {
    app.get(path, (request, reply) => send(request, reply, { path, type, make }))
  }
  serve('/openapi.json', JSON_TYPE, () => openapi)
  // Pages of games show it too.
  app.get(AVATAR_PATH, (request, reply) => {
    reply.header('cross-origin-resource-policy', 'cross-origin')
    return send(request, reply, { path: AVATAR_PATH, type: SVG, make: () => AVATAR })
  })
  serve(REFERENCE_PATH, HTML, reference.index)
  serve(ERRORS_PATH, HTML, reference.errors)
  app.get<{ Params: { section: string } }>(`${REFERENCE_PATH}/:section`, (request, reply) => {
    const { section } = request.params
    if (!section_ids.has(section)) return reply.callNotFound()
    return send(request, reply, { path: sectionPath(section), type: HTML, make: () => reference.section(section) })
  })
  app.get<{ Params: { code: string } }>(`${ERRORS_PATH}/:code`, (request, reply) => {
    const { code } = request.params
    if (!Object.hasOwn(ERRORS, code)) return reply.callNotFound()
    const make = () => reference.error(code as ErrorCode)
    return send(request, reply, { path: `${ERRORS_PATH}/${code}`, type: HTML, make })
  })
}

const AVATAR = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="Player">
<rect width="64" height="64" fill="#d5dbe3"/><circle cx="32" cy="25" r="11" fill="#7d8a9b"/><path d="M10 64a22 22 0 0 1 44 0z" fill="#7d8a9b"/></svg>
`

async function prepare(text: string): Promise<Page> {
  const bytes = Buffer.from(text)
  return {
    bytes,
    packed: await pack(bytes, BROTLI),
    etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
  }
}
