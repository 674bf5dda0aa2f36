// The members that each kind of target has: which are required, which are secret, and what is shown of the secrets.
import type { BodyOf, ErrorDetail, NoticeKind, putNoticeTarget } from '@musterhost/contract'
import type { Config } from '../../config/config.ts'
import { FetchFailure, parseTarget } from '../../outbound/safe-fetch.ts'
import { webhookRules } from '../../outbound/webhook-rules.ts'
import { NTFY_URL, type TargetSecrets, TELEGRAM_URL } from './messages.ts'

type Body = BodyOf<typeof putNoticeTarget>
type Member = 'url' | 'token' | 'topic' | 'chat_id' | 'addresses'

/** Characters of a secret that are shown at its end. It has at least HINT_OF_MIN. */
const HINT_LENGTH = 4
const HINT_OF_MIN = 20

const MEMBERS: Record<NoticeKind, { required: readonly Member[]; optional: readonly Member[] }> = {
  discord: { required: ['url'], optional: [] },
  slack: { required: ['url'], optional: [] },
  telegram: { required: ['token', 'chat_id'], optional: ['url'] },
  ntfy: { required: ['topic'], optional: ['url', 'token'] },
  email: { required: ['addresses'], optional: [] },
  webhook: { required: ['url'], optional: [] },
}
const ALL: readonly Member[] = ['url', 'token', 'topic', 'chat_id', 'addresses']
const TELEGRAM_TOKEN = /^\d{1,20}:[A-Za-z0-9_-]{1,100}$/

export function secretsOf({ url, token, topic }: Body): TargetSecrets {
  return {
    ...(url === undefined ? {} : { url }),
    ...(token === undefined ? {} : { token }),
    ...(topic === undefined ? {} : { topic }),
  }
}

/** `secrets`: with those of the target before. */
export function checkTarget(config: Config, body: Body, secrets: TargetSecrets): ErrorDetail[] {
  const { required, optional } = MEMBERS[body.kind]
  const given: Partial<Record<Member, unknown>> = { ...secrets, chat_id: body.chat_id, addresses: body.addresses }
  const missing = required
    .filter((member) => given[member] === undefined)
    .map((member) => ({
      ...{ path: [member], reason: 'required' },
      message: `A target of kind ${body.kind} needs ${member}.`,
    }))
  const needless = ALL.filter(
    (member) => body[member] !== undefined && !required.includes(member) && !optional.includes(member),
  ).map((member) => ({
    ...{ path: [member], reason: 'not_allowed' },
    message: `A target of kind ${body.kind} has no ${member}. Leave it out.`,
  }))
  return [...missing, ...needless, ...checkUrl(config, body.url), ...checkToken(config, body)]
}

function checkUrl(config: Config, url: string | undefined): ErrorDetail[] {
  if (url === undefined) return []
  try {
    parseTarget(url, webhookRules(config))
    return []
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    return [{ path: ['url'], reason: 'invalid', message: error.message }]
  }
}

function checkToken(config: Config, { kind, token }: Body): ErrorDetail[] {
  if (kind === 'email' && config.mail === null) {
    const message = 'The platform has no mail server. The operator sets MUSTER_SMTP_URL and MUSTER_MAIL_FROM.'
    return [{ path: ['kind'], reason: 'not_available', message }]
  }
  if (kind !== 'telegram' || token === undefined || TELEGRAM_TOKEN.test(token)) return []
  const message = 'This is no token of a bot. BotFather shows it as NUMBER:LETTERS.'
  return [{ path: ['token'], reason: 'invalid', message }]
}

/** The host, and the end of what is secret. */
export function hintOf(kind: NoticeKind, secrets: TargetSecrets): string | null {
  if (kind === 'email') return null
  const fallback = kind === 'ntfy' ? NTFY_URL : TELEGRAM_URL
  const { host } = new URL(secrets.url ?? fallback)
  const secret = kind === 'telegram' ? secrets.token : kind === 'ntfy' ? secrets.topic : secrets.url
  return secret === undefined || secret.length < HINT_OF_MIN ? host : `${host} …${secret.slice(-HINT_LENGTH)}`
}
