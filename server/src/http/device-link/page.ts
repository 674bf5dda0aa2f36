// The page of a device link. A person who has logged in sees which program asks, and confirms for one of their games, or
// refuses. As in the hub, the session's cookie is used only for POST /auth/tokens/identity, which requires this page's
// Origin. All further calls carry the user token, which the page keeps in memory.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { describeLink, LINK_PATH } from '../../cloud/device-links.ts'
import { hasEmailLogin } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { type Html, html, verbatim } from '../reference/html.ts'

const style = readFileSync(new URL('style.css', import.meta.url), 'utf8')
const script = readFileSync(new URL('script.js', import.meta.url), 'utf8')
const TURNSTILE = 'https://challenges.cloudflare.com'

export function registerDeviceLinkPage(app: FastifyInstance, ctx: Context): void {
  const site_key = ctx.config.login_turnstile?.site_key ?? null
  const policy = policyOf(site_key)
  // A wildcard: a token is longer than a named parameter may be.
  app.get(`${LINK_PATH}*`, (request, reply) => {
    const link = describeLink(ctx, (request.params as { '*': string })['*'])
    reply.headers({ 'content-security-policy': policy, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    reply.type('text/html; charset=utf-8').code(link === null ? 404 : 200)
    return reply.send(documentOf(link === null ? invalid() : asking(ctx, link, site_key)))
  })
}

function policyOf(site_key: string | null): string {
  const turnstile = site_key === null ? '' : ` ${TURNSTILE}`
  return [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'${turnstile}`,
    "connect-src 'self'",
    ...(site_key === null ? [] : [`frame-src${turnstile}`]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

function documentOf(content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Let a program in - Muster</title>
<link rel="icon" href="data:,">
<style>${verbatim(style)}</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`.html
}

function invalid(): Html {
  return html`<h1>This link is not valid</h1>
<p>Links are good for an hour, and end when they are refused. Ask the program for another one.</p>`
}

function asking(ctx: Context, link: { code: string; prepare_ms: number }, site_key: string | null): Html {
  const since = new Date(link.prepare_ms).toISOString()
  return html`<h1>A program asks to be let in</h1>
<p>It asked at <time datetime="${since}">${since}</time>. Its device link id ends with <code>${link.code}</code>. Go on only if you
started it yourself and it shows the same characters.</p>
<p id="told" role="status">Looking who you are …</p>
${hasEmailLogin(ctx.config) ? emailForms(site_key) : null}
<form id="access" hidden><h2>Log in with the operator's access token</h2>
<label>Access token <input name="access_token" type="password" autocomplete="off" required></label>
<button>Log in</button></form>
<form id="choose" hidden><p>You are logged in as <strong id="name"></strong>.</p>
<label>The program may do everything a developer may, in this game <select name="game_id" required></select></label>
<button>Confirm</button> <button type="button" id="refuse">Refuse</button></form>
<script>${verbatim(script)}</script>
${site_key === null ? null : html`<script src="${TURNSTILE}/turnstile/v0/api.js" async></script>`}`
}

function emailForms(site_key: string | null): Html {
  return html`<form id="email" hidden><h2>Log in by e-mail</h2>
<label>Address <input name="email" type="email" autocomplete="email" required></label>
${site_key === null ? null : html`<div class="cf-turnstile" data-sitekey="${site_key}"></div>`}
<button>Send a code</button></form>
<form id="code" hidden><label>Code from the mail <input name="code" autocomplete="one-time-code" required></label>
<button>Log in</button></form>`
}
