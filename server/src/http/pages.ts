// The few pages that the api role shows people: a first page until there is a hub, openapi.json, and a page for each
// error code, so that the `documentation` of an error body leads somewhere.
import { readFile } from 'node:fs/promises'
import { ERRORS, type ErrorCode } from '@muster/contract'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'

export function registerPages(app: FastifyInstance, ctx: Context): void {
  const openapi = new URL('../../../contract/openapi.json', import.meta.url)

  app.get('/', (_request, reply) =>
    reply.type('text/html; charset=utf-8').send(
      page(
        'Muster',
        `<p>The platform runs (${ctx.config.mode}).</p>
        <p>The API is described in <a href="/openapi.json">openapi.json</a>. The hub is not built yet; the admin token
        is in the file <code>admin-token</code> of the data folder.</p>`,
      ),
    ),
  )

  app.get('/openapi.json', async (_request, reply) => reply.type('application/json').send(await readFile(openapi)))

  app.get('/docs/errors/:code', (request, reply) => {
    const { code } = request.params as { code: string }
    if (!Object.hasOwn(ERRORS, code)) return reply.callNotFound()
    const { status, message } = ERRORS[code as ErrorCode]
    return reply
      .type('text/html; charset=utf-8')
      .send(page(code, `<p>${message}</p><p>HTTP status <code>${status}</code>.</p>`))
  })
}

function page(title: string, content: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>
body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:12vh auto;padding:0 1.5rem;color:#e6edf3;background:#0d1117}
a{color:#7cc4ff}code{background:#1c2430;padding:.1em .35em;border-radius:.3em}h1{font-weight:650}
</style><h1>${title}</h1>${content}</html>`
}
