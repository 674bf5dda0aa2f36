// The message that each kind of target takes, in the form that its service documents. Pure.
import type { NoticeKind } from '@musterhost/contract'
import type { Mail } from '../../outbound/mail.ts'
import { cutText, factsOf, type Notice } from './notice.ts'
import { signatureOf } from './signature.ts'

/** What a target keeps sealed. */
export type TargetSecrets = { url?: string; token?: string; topic?: string; signing_key?: string }
export type MessageTarget = { kind: NoticeKind; secrets: TargetSecrets; chat_id?: string }
export type Message = { url: string; headers: Record<string, string>; body: string }

export const NTFY_URL = 'https://ntfy.sh'
export const TELEGRAM_URL = 'https://api.telegram.org'

const JSON_HEADERS = { 'content-type': 'application/json', 'user-agent': 'Muster' }
/** Limits of the services, in characters; for ntfy in bytes. */
const DISCORD = { title: 256, description: 4_096, field: 1_024 }
const SLACK = { header: 150, section: 3_000 }
const TELEGRAM_TEXT_MAX = 4_096
const NTFY = { title: 250, message_bytes: 3_500 }
const DISCORD_COLOURS = { error: 0xd92d20, warning: 0xdc8a04, info: 0x2e7d32 }
const NTFY_PRIORITIES = { error: 5, warning: 4, info: 3 }
const NTFY_TAGS = { error: 'rotating_light', warning: 'warning', info: 'information_source' }

/** `now_ms`: the time that a webhook's signature says. */
export function messageOf({ kind, secrets, chat_id = '' }: MessageTarget, notice: Notice, now_ms: number): Message {
  const { url = '', token } = secrets
  switch (kind) {
    case 'discord':
      return { url, headers: JSON_HEADERS, body: JSON.stringify(discordBody(notice)) }
    case 'slack':
      return { url, headers: JSON_HEADERS, body: JSON.stringify(slackBody(notice)) }
    case 'telegram':
      return {
        url: `${withoutSlash(secrets.url ?? TELEGRAM_URL)}/bot${token}/sendMessage`,
        headers: JSON_HEADERS,
        body: JSON.stringify({
          chat_id: /^-?\d+$/.test(chat_id) ? Number(chat_id) : chat_id,
          text: cutLines(plainText(notice), TELEGRAM_TEXT_MAX),
          link_preview_options: { is_disabled: true },
        }),
      }
    case 'ntfy':
      return {
        url: `${withoutSlash(secrets.url ?? NTFY_URL)}/`,
        headers: { ...JSON_HEADERS, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
        body: JSON.stringify(ntfyBody(notice, secrets.topic ?? '')),
      }
    case 'webhook': {
      const body = JSON.stringify(notice)
      const signed = signatureOf(secrets.signing_key ?? '', { id: notice.notice_id, ms: now_ms, body })
      return { url, headers: { ...JSON_HEADERS, ...signed }, body }
    }
    case 'email':
      throw new Error('A mail is no HTTP message.')
  }
}

export function mailOf(notice: Notice, to: string): Mail {
  return { to, subject: `[Muster] ${cutText(notice.title, 200)}`, text: `${plainText(notice)}\n` }
}

/** A webhook of Discord: one embed, which mentions no one. */
function discordBody(notice: Notice): object {
  const lines =
    notice.lines === undefined ? '' : `\n\`\`\`\n${notice.lines.join('\n').replaceAll('```', "'''")}\n\`\`\``
  return {
    embeds: [
      {
        title: cutText(notice.title, DISCORD.title),
        url: notice.url,
        description: cutLines(`${escapeMarkdown(notice.text)}${lines}`, DISCORD.description),
        color: DISCORD_COLOURS[notice.severity],
        fields: factsOf(notice).map(([name, value]) => ({
          ...{ name, value: cutText(escapeMarkdown(value), DISCORD.field), inline: true },
        })),
        footer: { text: `${notice.event} · ${notice.notice_id}` },
        timestamp: notice.ts,
      },
    ],
    allowed_mentions: { parse: [] },
  }
}

/** An incoming webhook of Slack: blocks, and the text that a notification shows. */
function slackBody(notice: Notice): object {
  const facts = factsOf(notice).map(([name, value]) => `*${name}:* ${escapeSlack(value)}`)
  const lines = notice.lines === undefined ? '' : `\n\`\`\`${escapeSlack(notice.lines.join('\n'))}\`\`\``
  const text = `${escapeSlack(notice.text)}${lines}\n${facts.join('  ')}\n<${notice.url}|Open in the hub>`
  return {
    text: cutText(escapeSlack(notice.title), SLACK.section),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: cutText(notice.title, SLACK.header), emoji: false } },
      { type: 'section', text: { type: 'mrkdwn', text: cutLines(text, SLACK.section) } },
      { type: 'context', elements: [{ type: 'mrkdwn', text: `${notice.event} · ${notice.notice_id}` }] },
    ],
  }
}

function ntfyBody(notice: Notice, topic: string): object {
  const text = [notice.text, ...(notice.lines ?? []), ...factsOf(notice).map(([name, value]) => `${name}: ${value}`)]
  return {
    topic,
    title: cutText(notice.title, NTFY.title),
    message: cutBytes(`${text.join('\n')}\n${notice.notice_id}`, NTFY.message_bytes),
    priority: NTFY_PRIORITIES[notice.severity],
    tags: [NTFY_TAGS[notice.severity]],
    click: notice.url,
  }
}

function plainText(notice: Notice): string {
  const facts = factsOf(notice).map(([name, value]) => `${name}: ${value}`)
  return [notice.title, notice.text, ...(notice.lines ?? []), ...facts, notice.url, notice.notice_id].join('\n')
}

/** What Slack reads as markup. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_~|[\]<>#]/g, '\\$&')
}

/** A text of several lines. */
function cutLines(text: string, length_max: number): string {
  return text.length <= length_max ? text : `${text.slice(0, length_max - 1)}…`
}

function cutBytes(text: string, bytes_max: number): string {
  const bytes = Buffer.from(text)
  return bytes.length <= bytes_max
    ? text
    : `${bytes
        .subarray(0, bytes_max - 6)
        .toString()
        .replace(/\ufffd$/, '')}…`
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}
