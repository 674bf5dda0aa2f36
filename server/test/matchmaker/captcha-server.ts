// A captcha provider as the two real ones are, on a port of this machine: it knows its secrets, takes a response once,
// and can fail in every way in which a server on the internet does.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export const SITE_KEY = 'site-key'
export const SECRET = 'planted-captcha-secret'

/** What the provider says of the page that showed the widget. */
type Page = { hostname?: string; action?: string }

export type CaptchaServer = {
  url: string
  /** What it was asked, in order. */
  asked: Record<string, string>[]
  /** A response that it will take for good, once; `page`: where it was solved, this machine unless said otherwise. */
  solve: (page?: Page) => string
  /** Replaces its answer. */
  misbehave: (how: ((res: ServerResponse) => void) | null) => void
}

export async function startCaptchaServer(t: TestContext): Promise<CaptchaServer> {
  const asked: CaptchaServer['asked'] = []
  const good = new Map<string, Page>()
  let solved = 0
  let misbehaviour: ((res: ServerResponse) => void) | null = null

  const server = createServer(async (req, res) => {
    let body = ''
    for await (const chunk of req.setEncoding('utf8')) body += chunk
    const form = Object.fromEntries(new URLSearchParams(body))
    asked.push(form)
    if (misbehaviour !== null) return misbehaviour(res)
    const answer = (said: object) => {
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify(said))
    }
    const refuse = (code: string) => answer({ success: false, 'error-codes': [code] })
    // A test key passes everybody, and names a page that nobody was on.
    if (form.secret === '1x0000000000000000000000000000000AA')
      return answer({ success: true, 'error-codes': [], hostname: 'example.com', action: 'test' })
    if (form.secret !== SECRET) return refuse('invalid-input-secret')
    const page = good.get(form.response ?? '')
    if (page === undefined) return refuse('timeout-or-duplicate')
    good.delete(form.response ?? '')
    answer({ success: true, 'error-codes': [], challenge_ts: new Date().toISOString(), ...page })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`,
    asked,
    solve(page = { hostname: 'localhost' }) {
      const response = `response-${++solved}`
      good.set(response, page)
      return response
    },
    misbehave(how) {
      misbehaviour = how
    },
  }
}
