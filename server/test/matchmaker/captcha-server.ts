// A captcha provider as the two real ones are, on a port of this machine: it knows its secrets, takes a response once,
// and can fail in every way in which a server on the internet does.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
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
    // A test key passes every response, and names a page that was never open.
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

/** What hCaptcha publishes for tests. The response is the one that its widget returns for this site key. */
export const HCAPTCHA_TEST = {
  site_key: '10000000-ffff-ffff-ffff-000000000001',
  secret_key: '0x0000000000000000000000000000000000000000',
  response: '10000000-aaaa-bbbb-cccc-000000000001',
} as const
export const HCAPTCHA_KEYS = {
  site_key: '4b1b1f0c-0f0e-4f6c-9d51-5f1d2d7a8c11',
  secret_key: 'ES_planted-secret',
} as const

type Passcode = { hostname: string; is_expired: boolean; is_seen: boolean }

export type HcaptchaServer = {
  url: string
  /** The forms that it received, in order. */
  received: Record<string, string>[]
  /** A response of the widget of HCAPTCHA_KEYS, solved on a page of this host. */
  solve: (hostname: string) => string
  /** The time of the response runs out. */
  expire: (response: string) => void
}

/** hCaptcha's siteverify, as its documentation describes it: form fields, members of the response, and error codes. */
export async function startHcaptchaServer(t: TestContext): Promise<HcaptchaServer> {
  const received: HcaptchaServer['received'] = []
  const passcodes = new Map<string, Passcode>()

  function verify(form: Record<string, string>): Record<string, unknown> {
    const fail = (code: string) => ({ success: false, 'error-codes': [code] })
    const pass = (hostname: string) => ({
      ...{ success: true, challenge_ts: new Date().toISOString(), hostname, credit: false },
    })
    const { secret = '', response = '', sitekey } = form
    if (secret === '') return fail('missing-input-secret')
    if (response === '') return fail('missing-input-response')
    const keys = [HCAPTCHA_TEST, HCAPTCHA_KEYS].find(({ secret_key }) => secret_key === secret)
    if (keys === undefined) return fail('invalid-input-secret')
    if (sitekey !== undefined && sitekey !== keys.site_key) return fail('sitekey-secret-mismatch')
    if (keys === HCAPTCHA_TEST) {
      return response === HCAPTCHA_TEST.response ? pass('dummy-key-pass') : fail('not-using-dummy-passcode')
    }
    const passcode = passcodes.get(response)
    if (passcode === undefined) return fail('invalid-input-response')
    if (passcode.is_expired) return fail('expired-input-response')
    if (passcode.is_seen) return fail('already-seen-response')
    passcode.is_seen = true
    return pass(passcode.hostname)
  }

  const server = createServer(async (req, res) => {
    const is_form = req.headers['content-type'] === 'application/x-www-form-urlencoded'
    const form = Object.fromEntries(new URLSearchParams(await text(req)))
    received.push(form)
    const result =
      req.method === 'POST' && req.url === '/siteverify' && is_form
        ? verify(form)
        : { success: false, 'error-codes': ['bad-request'] }
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify(result))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`,
    received,
    solve(hostname) {
      const response = `P1_${passcodes.size + 1}`
      passcodes.set(response, { hostname, is_expired: false, is_seen: false })
      return response
    },
    expire(response) {
      passcodes.get(response)!.is_expired = true
    },
  }
}
