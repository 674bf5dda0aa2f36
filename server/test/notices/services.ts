// Strict stand-ins of the services that take notices, on loopback. Each refuses what the service documents as wrong: Discord's
// "Execute Webhook", Slack's incoming webhooks, Telegram's sendMessage, ntfy's publish as JSON, and a program that verifies the
// signature of a webhook.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export const DISCORD_PATH = '/api/webhooks/1181234567890123456/qV3mNplantedDiscordToken9fQx'
export const SLACK_PATH = '/services/T0AAAAAAA/B0BBBBBBB/plantedSlackToken'
export const TELEGRAM_TOKEN = '123456:AAEplantedTelegramToken'
export const NTFY_TOKEN = 'tk_plantedNtfyToken'
export const NTFY_TOPIC = 'planted_topic_of_the_team'
const BODY_BYTES_MAX = 256 * 1024
const TOLERANCE_S = 300

export type Received = { path: string; headers: IncomingHttpHeaders; body: string; faults: string[]; status: number }
type Reply = { status: number; body?: unknown; headers?: Record<string, string>; hangs_up?: boolean }

export type Services = {
  url: string
  received: Received[]
  /** The key that the webhook at /hook verifies with. */
  signing_key: string
  /** Replies in place of the service's own. Null: its own. */
  reply: ((received: Received) => Reply | null) | null
  close: () => void
}

export async function startServices(t: TestContext): Promise<Services> {
  const services: Services = { url: '', received: [], signing_key: '', reply: null, close: () => server.close() }
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part
      if (body.length > BODY_BYTES_MAX) req.destroy()
    })
    req.on('end', () => {
      const received: Received = { path: req.url ?? '', headers: req.headers, body, faults: [], status: 0 }
      if (req.method !== 'POST') received.faults.push('the method is not POST')
      if (req.headers['content-type'] !== 'application/json') received.faults.push('it is no JSON')
      const own = serve(services, received)
      const reply = services.reply?.(received) ?? own
      received.status = reply.status
      services.received.push(received)
      send(res, reply)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  services.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => server.close())
  return services
}

function send(res: ServerResponse, { status, body, headers = {}, hangs_up = false }: Reply): void {
  if (hangs_up) return void res.socket?.destroy()
  res.writeHead(status, headers)
  res.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
}

function serve(services: Services, received: Received): Reply {
  const { path, faults } = received
  const is = (must: boolean, what: string): void => {
    if (!must) faults.push(what)
  }
  let body: Record<string, unknown> = {}
  try {
    body = JSON.parse(received.body) as Record<string, unknown>
  } catch {
    faults.push('the body is not JSON')
  }
  if (path === DISCORD_PATH) {
    checkDiscord(body, is)
    return faults.length === 0 ? { status: 204 } : { status: 400, body: { code: 50_035, message: 'Invalid Form Body' } }
  }
  if (path === SLACK_PATH) {
    checkSlack(body, is)
    return faults.length === 0 ? { status: 200, body: 'ok' } : { status: 400, body: 'invalid_blocks' }
  }
  if (path === `/bot${TELEGRAM_TOKEN}/sendMessage`) {
    checkTelegram(body, is)
    if (faults.length === 0) return { status: 200, body: { ok: true, result: { message_id: 1 } } }
    return { status: 400, body: { ok: false, error_code: 400, description: 'Bad Request: message text is empty' } }
  }
  if (path === '/') {
    if (received.headers.authorization !== `Bearer ${NTFY_TOKEN}`)
      return { status: 401, body: { code: 40_101, http: 401 } }
    checkNtfy(body, is)
    return faults.length === 0
      ? { status: 200, body: { id: 'x', event: 'message' } }
      : { status: 400, body: { code: 40_024 } }
  }
  if (path === '/hook') {
    is(isSigned(services.signing_key, received), 'the signature is wrong')
    return faults.length === 0 ? { status: 200, body: 'thanks' } : { status: 400, body: 'bad signature' }
  }
  return { status: 404, body: 'no such webhook' }
}

type Is = (must: boolean, what: string) => void
const textOf = (value: unknown, min: number, max: number): boolean =>
  typeof value === 'string' && value.length >= min && value.length <= max
const onlyHas = (record: object, members: readonly string[]): boolean =>
  Object.keys(record).every((member) => members.includes(member))
const isUrl = (value: unknown): boolean => typeof value === 'string' && /^https?:\/\/[^\s]+$/.test(value)

function checkDiscord(body: Record<string, unknown>, is: Is): void {
  is(onlyHas(body, ['content', 'username', 'avatar_url', 'tts', 'embeds', 'allowed_mentions', 'flags']), 'members')
  const embeds = (body.embeds ?? []) as Record<string, unknown>[]
  is(embeds.length >= 1 && embeds.length <= 10, 'embeds')
  is(JSON.stringify(body.allowed_mentions) === '{"parse":[]}', 'it could mention someone')
  for (const embed of embeds) {
    is(
      onlyHas(embed, ['title', 'description', 'url', 'color', 'fields', 'footer', 'timestamp']),
      'members of the embed',
    )
    const fields = (embed.fields ?? []) as { name: string; value: string; inline: boolean }[]
    const { text } = embed.footer as { text: string }
    is(textOf(embed.title, 1, 256), 'title')
    is(textOf(embed.description, 0, 4096), 'description')
    is(isUrl(embed.url), 'url')
    is(Number.isInteger(embed.color), 'color')
    is(
      fields.length <= 25 && fields.every(({ name, value }) => textOf(name, 1, 256) && textOf(value, 1, 1024)),
      'fields',
    )
    is(textOf(text, 1, 2048), 'footer')
    is(!Number.isNaN(Date.parse(String(embed.timestamp))), 'timestamp')
    const texts = [
      String(embed.title),
      String(embed.description),
      text,
      ...fields.flatMap(({ name, value }) => [name, value]),
    ]
    is(texts.join('').length <= 6000, 'all texts')
  }
}

function checkSlack(body: Record<string, unknown>, is: Is): void {
  is(onlyHas(body, ['text', 'blocks', 'attachments', 'thread_ts', 'mrkdwn']), 'members')
  is(textOf(body.text, 1, 40_000), 'text')
  const blocks = (body.blocks ?? []) as { type: string; text?: { type: string; text: string }; elements?: unknown[] }[]
  is(blocks.length >= 1 && blocks.length <= 50, 'blocks')
  for (const { type, text, elements } of blocks) {
    if (type === 'header') is(text?.type === 'plain_text' && textOf(text.text, 1, 150), 'header')
    else if (type === 'section') is(text?.type === 'mrkdwn' && textOf(text.text, 1, 3000), 'section')
    else is(type === 'context' && (elements?.length ?? 0) >= 1 && elements!.length <= 10, 'context')
    // A bare < or & would be markup.
    for (const sign of (text?.text ?? '').matchAll(/<([^>]*)>?/g))
      is(/^https?:\/\/[^|>]+\|[^>]+$/.test(sign[1]!), 'markup')
  }
}

function checkTelegram(body: Record<string, unknown>, is: Is): void {
  is(onlyHas(body, ['chat_id', 'text', 'link_preview_options', 'disable_notification', 'parse_mode']), 'members')
  is(Number.isInteger(body.chat_id) || /^@\w+$/.test(String(body.chat_id)), 'chat_id')
  is(textOf(body.text, 1, 4096), 'text')
  is(body.parse_mode === undefined, 'names are read as markup')
}

function checkNtfy(body: Record<string, unknown>, is: Is): void {
  is(onlyHas(body, ['topic', 'title', 'message', 'priority', 'tags', 'click', 'actions', 'markdown']), 'members')
  is(/^[-_A-Za-z0-9]{1,64}$/.test(String(body.topic)), 'topic')
  is(textOf(body.title, 1, 250) && Buffer.byteLength(String(body.message)) <= 4096, 'message')
  is([1, 2, 3, 4, 5].includes(Number(body.priority)), 'priority')
  is(Array.isArray(body.tags) && isUrl(body.click), 'tags and click')
}

function isSigned(signing_key: string, { headers, body }: Received): boolean {
  const [id, time, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    String(headers[name]),
  )
  if (Math.abs(Date.now() / 1_000 - Number(time)) > TOLERANCE_S + 86_400) return false
  const key = Buffer.from(signing_key.replace('whsec_', ''), 'base64')
  const wanted = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`)
  const got = Buffer.from(signature!)
  return wanted.length === got.length && timingSafeEqual(wanted, got)
}
