// The guides of docs/ as pages, with a search. They are read and rendered at the first request, so a platform whose guides have no
// reader spends nothing on them.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createPageSender, HTML, pageHeaders } from '../page-sender.ts'
import { GUIDES_PATH } from '../reference/frame.ts'
import { readGuides } from './files.ts'
import { framedGuide, framedSearch, GUIDES_POLICY, type GuideFrame } from './frame.ts'
import type { RenderedGuide } from './render.ts'
import { GuideSearch } from './search.ts'

type Guides = { by_name: ReadonlyMap<string, RenderedGuide>; search: GuideSearch; frame: GuideFrame }

export function registerGuides(app: FastifyInstance, { version }: { version: string }): void {
  const sendPage = createPageSender(GUIDES_POLICY)
  let opened: Promise<Guides> | null = null

  async function send(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply | undefined> {
    opened ??= openGuides(version)
    const { by_name, search, frame } = await opened
    const guide = by_name.get(name)
    if (guide === undefined) {
      reply.callNotFound()
      return undefined
    }
    const { q } = request.query as { q?: unknown }
    if (name === '' && typeof q === 'string' && q.trim() !== '') {
      reply.headers(pageHeaders(GUIDES_POLICY))
      return reply.type(HTML).send(framedSearch(frame, { question: q, found: search.find(q) }))
    }
    return sendPage(request, reply, { path: name, type: HTML, make: () => framedGuide(frame, { name, guide }) })
  }
  app.get(GUIDES_PATH, (request, reply) => send(request, reply, ''))
  app.get<{ Params: { name: string } }>(`${GUIDES_PATH}/:name`, (request, reply) =>
    send(request, reply, request.params.name),
  )
  app.get<{ Params: { name: string } }>(`${GUIDES_PATH}/commands/:name`, (request, reply) =>
    send(request, reply, `commands/${request.params.name}`),
  )
}

async function openGuides(version: string): Promise<Guides> {
  const { renderGuide, titleOf } = await import('./render.ts')
  const files = readGuides()
  const targets = new Map(files.map(({ path, name, text }) => [path, { name, title: titleOf(text) }]))
  const by_name = new Map(files.map((file) => [file.name, renderGuide(file, (path) => targets.get(path))]))
  const titles = [...by_name].map(([name, { title }]) => ({ name, title }))
  return { by_name, search: new GuideSearch(by_name), frame: { version, titles } }
}
