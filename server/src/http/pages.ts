// The API reference, and the picture of people without one.
import { readFileSync } from 'node:fs'
import { ERRORS, type ErrorCode } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { sectionsOf } from '@musterhost/contract/sections'
import type { FastifyInstance } from 'fastify'
import { mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import { AVATAR_PATH } from '../identity/constant-members.ts'
import { platformVersion } from '../wire/platform-version.ts'
import { registerGuides } from './guides/pages.ts'
import { createPageSender, HTML } from './page-sender.ts'
import { ERRORS_PATH, POLICY, REFERENCE_PATH, sectionPath } from './reference/frame.ts'
import { createReference } from './reference/pages.ts'

const OPENAPI = new URL('../../../contract/openapi.json', import.meta.url)
const JSON_TYPE = 'application/json; charset=utf-8'
const SVG = 'image/svg+xml'

export function registerPages(app: FastifyInstance, ctx: Context): void {
  const version = platformVersion()
  const reference = createReference({ main_url: mainUrl(ctx.config), version })
  const section_ids = new Set(sectionsOf(OPERATIONS).map(({ id }) => id))
  const send = createPageSender(POLICY)

  const serve = (path: string, type: string, make: () => string): void => {
    app.get(path, (request, reply) => send(request, reply, { path, type, make }))
  }
  // More than a megabyte, which is read at the first request.
  serve('/openapi.json', JSON_TYPE, () => readFileSync(OPENAPI, 'utf8'))
  // Pages of games show it too.
  app.get(AVATAR_PATH, (request, reply) => {
    reply.header('cross-origin-resource-policy', 'cross-origin')
    return send(request, reply, { path: AVATAR_PATH, type: SVG, make: () => AVATAR })
  })
  registerGuides(app, { version })
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
