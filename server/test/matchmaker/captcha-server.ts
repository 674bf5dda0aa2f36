// A captcha provider as the two real ones are, on a port of this machine: it knows its secrets, takes a response once,
// and can fail in every way in which a server on the internet does.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export const SITE_KEY = 'site-key'
export const SECRET = 'planted-captcha-secret'

export type CaptchaServer = {
  url: string
  /** What it was asked, in order. */
  asked: Record<string, string>[]
  /** A response that it will take for good, once. */
  solve: () => string
  /** Replaces its answer. */
  misbehave: (how: ((res: ServerResponse) => void) | null) => void
}

export async function startCaptchaServer(t: TestContext): Promise<CaptchaServer> {
  const asked: CaptchaServer['asked'] = []
  const good = new Set<string>()
  let solved = 0
  let misbehaviour: ((res: ServerResponse) => void) | null = null

  const server = createServer(async (req, res) => {
    let body = ''
    for await (const chunk of req.setEncoding('utf8')) body += chunk
    const form = Object.fromEntries(new URLSearchParams(body))
    asked.push(form)
    if (misbehaviour !== null) return misbehaviour(res)
    const answer = (success: boolean, ...codes: string[]) => {
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ success, 'error-codes': codes }))
    }
    if (form.secret !== SECRET)
      return answer(form.secret === '1x0000000000000000000000000000000AA', 'invalid-input-secret')
    if (!good.delete(form.response ?? '')) return answer(false, 'timeout-or-duplicate')
    answer(true)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`,
    asked,
    solve() {
      const response = `response-${++solved}`
      good.add(response)
      return response
    },
    misbehave(how) {
      misbehaviour = how
    },
  }
}
