// Sends one notice to its target, and says what came of it. Errors and excerpts never contain an address or a token.
import type { Context } from '../../context.ts'
import type { NoticeSettings } from '../../database/schema.ts'
import { createDns } from '../../outbound/dns.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../outbound/safe-fetch.ts'
import { webhookRules } from '../../outbound/webhook-rules.ts'
import { type MessageTarget, mailOf, messageOf, type TargetSecrets } from './messages.ts'
import { cutText, type Notice } from './notice.ts'
import { outcomeOf, type SendOutcome } from './outcome.ts'

/** For one request, from the look-up of the name to the end of the response. */
const REQUEST_MS_MAX = 10_000
const RESPONSE_BYTES_MAX = 64 * 1024
/** For the mails of one notice, which is less than the lease of a target. */
const MAILS_MS_MAX = 60_000
/** Characters of a response that are kept. */
const EXCERPT_LENGTH_MAX = 300
/** A secret that a response repeats is hidden when it has at least so many characters. */
const HIDDEN_LENGTH_MIN = 6

export type SendTarget = MessageTarget & {
  target_id: string
  /** Group whose members may get mails; null: of the platform. */
  owner_group_id: string | null
  settings: NoticeSettings
}
/** `status`: null when there was no response. */
export type Sent = { outcome: SendOutcome; status: number | null; response: string }
export type SendNotice = (target: SendTarget, notice: Notice, signal?: AbortSignal) => Promise<Sent>

export function createSend(ctx: Context): SendNotice {
  const rules: FetchRules = {
    ...webhookRules(ctx.config),
    names: createDns(ctx.config.dns_servers),
    trust: ctx.trust,
  }
  return (target, notice, signal) =>
    target.kind === 'email' ? sendMail(ctx, target, notice) : call(ctx, rules, target, notice, signal)
}

async function call(
  ctx: Context,
  rules: FetchRules,
  target: SendTarget,
  notice: Notice,
  signal: AbortSignal | undefined,
): Promise<Sent> {
  const message = messageOf(target, notice, ctx.now())
  try {
    const { status, headers, body } = await safeFetch(
      {
        ...{ ...message, method: 'POST', timeout_ms: REQUEST_MS_MAX, body_bytes_max: RESPONSE_BYTES_MAX },
        ...(signal === undefined ? {} : { signal }),
      },
      rules,
    )
    const text = body.toString()
    return { outcome: outcomeOf(status, headers, text, ctx.now()), status, response: excerptOf(text, target.secrets) }
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    const is_forbidden = error.reason === 'url' || error.reason === 'address_not_public'
    return {
      outcome: { kind: is_forbidden ? 'dead' : 'retry' },
      status: null,
      response: excerptOf(error.message, target.secrets),
    }
  }
}

/** One mail for each address, so that no recipient sees the others. Each address of a person who left the group is skipped. */
async function sendMail(ctx: Context, target: SendTarget, notice: Notice): Promise<Sent> {
  if (ctx.mailer === null) return failed('dead', 'The platform has no mail server: MUSTER_SMTP_URL is not set.')
  const addresses = await allowedAddresses(ctx, target)
  if (addresses.length === 0) return failed('dead', 'None of the addresses belongs to a member of the group.')
  const end_ms = ctx.elapsed() + MAILS_MS_MAX
  for (const to of addresses) {
    if (ctx.elapsed() > end_ms) return failed('retry', 'The mail server is too slow.')
    try {
      const result = await ctx.mailer.send(mailOf(notice, to), `notices ${target.target_id}`)
      if (result === 'busy') return failed('retry', 'Too many mails are under way.')
    } catch (error) {
      const { responseCode } = error as { responseCode?: unknown }
      const refused = typeof responseCode === 'number' && responseCode >= 550 && responseCode < 560
      return failed(refused ? 'refused' : 'retry', excerptOf((error as Error).message, target.secrets))
    }
  }
  return { outcome: { kind: 'delivered' }, status: null, response: `The mail server took ${addresses.length} mails.` }
}

/** The addresses that the target may send to now. */
export async function allowedAddresses(
  { db }: Pick<Context, 'db'>,
  { settings, owner_group_id }: Pick<SendTarget, 'settings' | 'owner_group_id'>,
): Promise<string[]> {
  const { addresses = [], by_admin } = settings
  if (by_admin || owner_group_id === null) return addresses
  const rows = await db
    .selectFrom('group_members')
    .innerJoin('users', 'users.user_id', 'group_members.user_id')
    .select('email')
    .where('group_id', '=', owner_group_id)
    .where('email', 'in', addresses.length === 0 ? [''] : addresses)
    .execute()
  const members = new Set(rows.map(({ email }) => email))
  return addresses.filter((address) => members.has(address))
}

function failed(kind: 'dead' | 'retry' | 'refused', response: string): Sent {
  return { outcome: { kind }, status: null, response }
}

/** The beginning of a response as one line. What the target keeps secret is not in it. */
export function excerptOf(text: string, secrets: TargetSecrets): string {
  let shown = cutText(text.replace(/\s+/g, ' '), EXCERPT_LENGTH_MAX * 4)
  for (const secret of secretTexts(secrets)) shown = shown.replaceAll(secret, '…')
  return cutText(shown, EXCERPT_LENGTH_MAX)
}

function secretTexts({ url, ...others }: TargetSecrets): string[] {
  const parts =
    url === undefined || !URL.canParse(url) ? [] : [url, new URL(url).pathname, ...new URL(url).pathname.split('/')]
  return [...parts, ...Object.values(others)]
    .filter((text) => text !== undefined && text.length >= HIDDEN_LENGTH_MIN)
    .toSorted((one, other) => other.length - one.length)
}
