// Users in tests, who log in with the code from the mail.
import assert from 'node:assert/strict'
import {
  completeEmailVerification,
  type ErrorBody,
  type Operation,
  refreshIdentityToken,
  startEmailVerification,
} from '@musterhost/contract'
import { type Client, createClient } from '@musterhost/contract/client'
import { mainUrl } from '../../src/config/addresses.ts'
import type { Platform } from '../support/platform.ts'
import type { MailServer } from './mail-server.ts'

export type Person = { user_id: string; email: string; token: string; cookie: string; client: Client }

type Said = { status: number; body: Record<string, unknown>; cookie: string | null; set_cookie: string | null }

/** Calls an operation as a browser does: with the page's origin and its cookie, if any. */
export async function say(
  platform: Platform,
  operation: Operation,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Said> {
  const response = await fetch(`${platform.api_url}${operation.path}`, {
    method: operation.method,
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const set_cookie = response.headers.get('set-cookie')
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    set_cookie,
    cookie: set_cookie?.split(';')[0] ?? null,
  }
}

export function hub(platform: Platform, cookie?: string | null): Record<string, string> {
  return { origin: mainUrl(platform.ctx.config), ...(cookie == null ? {} : { cookie }) }
}

export function refresh(platform: Platform, cookie: string | null, body: object = {}): Promise<Said> {
  return say(platform, refreshIdentityToken, body, hub(platform, cookie))
}

export function codeIn(mail: MailServer, email: string): string {
  const letter = mail.letters.findLast(({ to }) => to === email)
  assert.ok(letter, `No mail came to ${email}.`)
  const code = /^Subject: (\S+) is your login code$/m.exec(letter.text)?.[1]
  assert.ok(code, letter.text)
  return code
}

export async function logIn(platform: Platform, mail: MailServer, email: string): Promise<Person> {
  const anyone = createClient({ url: platform.api_url })
  const { verification_id } = await anyone.call(startEmailVerification, { body: { email } })
  const completed = await say(platform, completeEmailVerification, { verification_id, code: codeIn(mail, email) })
  assert.deepEqual(completed.body, { status: 'switch_identity' })
  const refreshed = await refresh(platform, completed.cookie)
  assert.equal(refreshed.status, 200, (refreshed.body as ErrorBody).message)
  const token = String(refreshed.body.token)
  return {
    user_id: String(refreshed.body.identity_id),
    email,
    token,
    cookie: refreshed.cookie ?? '',
    client: createClient({ url: platform.api_url, token }),
  }
}
