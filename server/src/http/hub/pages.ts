// The hub's pages. Every page has the same document: the script in it reads the address and calls the public API. The policy
// allows scripts and styles of this origin only, beside styles that carry the nonce of the response.
import { randomBytes } from 'node:crypto'
import { OPERATIONS } from '@musterhost/contract/operations'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LINK_PATH } from '../../cloud/tokens/device-links.ts'
import { mainUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { framed, REFERENCE_PATH } from '../reference/frame.ts'
import { html } from '../reference/html.ts'
import { ASSETS_PATH, Hub } from './files.ts'

/** The addresses of the hub. A path below them that names no page shows the hub's own page about it. */
const PAGES = [
  '/',
  '/sign-in',
  '/sign-in/*',
  '/account',
  `${LINK_PATH}*`,
  '/games/*',
  '/groups/*',
  '/invites/*',
  '/platform',
  '/platform/*',
] as const
/** First segments of the paths of the API. */
const API_ROOTS = new Set(OPERATIONS.map(({ path }) => path.split('/')[1]!))
const TURNSTILE = 'https://challenges.cloudflare.com'
const NONCE_BYTES = 16
/** The browser asks again while the hub is being built. */
const NOT_BUILT_REFRESH_S = 3
const ASSET_AGE_S = 365 * 24 * 60 * 60

export type HubPages = {
  register(app: FastifyInstance): void
  /** Sends the hub's page about an unknown address. Returns null where the client expects the error of the API. */
  sendNotFound(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> | null
}

export function openHubPages(ctx: Context): HubPages {
  const hub = new Hub()
  const main_url = mainUrl(ctx.config)
  const { host } = new URL(main_url)

  async function send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // A session belongs to one origin: on another host of the platform the sign-in would fail.
    if (request.headers.host !== host) return reply.redirect(`${main_url}${request.url}`, 302)
    reply.type('text/html; charset=utf-8').header('cache-control', 'no-store')
    // The address is a secret: with it, the token of the link can be fetched once the link is complete.
    if (request.url.startsWith(LINK_PATH)) reply.header('referrer-policy', 'no-referrer')
    const files = await hub.files()
    if (files === null) return reply.header('refresh', String(NOT_BUILT_REFRESH_S)).send(notBuilt())
    const nonce = randomBytes(NONCE_BYTES).toString('base64')
    reply.header('content-security-policy', policyOf(nonce, ctx.config))
    return reply.send(files.document.replaceAll('__NONCE__', nonce))
  }
  return {
    register(app) {
      for (const path of PAGES) app.get(path, send)
      registerAssets(app, hub)
    },
    sendNotFound: (request, reply) => (isForPerson(request) ? send(request, reply.code(404)) : null),
  }
}

/** A person who mistyped an address gets a page, and a program the error of the API. */
function isForPerson({ method, url, headers }: FastifyRequest): boolean {
  const [, root = ''] = url.split(/[/?]/)
  return method === 'GET' && !API_ROOTS.has(root) && String(headers.accept ?? '').includes('text/html')
}

function registerAssets(app: FastifyInstance, hub: Hub): void {
  async function send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const path = request.url.split('?', 1)[0] ?? ''
    const files = await hub.files()
    const file = await files?.read(path, String(request.headers['accept-encoding'] ?? ''))
    if (file === undefined) {
      reply.callNotFound()
      return undefined
    }
    const is_immutable = path.startsWith(ASSETS_PATH)
    reply.header('cache-control', is_immutable ? `public, max-age=${ASSET_AGE_S}, immutable` : 'no-cache')
    reply.header('vary', 'Accept-Encoding')
    if (file.coding !== null) reply.header('content-encoding', file.coding)
    return reply.type(file.type).send(file.bytes)
  }
  app.get(`${ASSETS_PATH}*`, send)
  app.get('/hub-icon.svg', send)
}

/** The sign-in may show the widget of the captcha provider, and uploads may go straight to a bucket. */
function policyOf(nonce: string, { login_turnstile, objects }: Pick<Config, 'login_turnstile' | 'objects'>): string {
  const has_captcha = login_turnstile !== null
  const upload_endpoint = objects?.upload_endpoint ?? null
  const captcha = has_captcha ? ` ${TURNSTILE}` : ''
  return [
    "default-src 'none'",
    `script-src 'self'${captcha}`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${upload_endpoint === null ? '' : ` ${upload_endpoint}`}`,
    "worker-src 'self'",
    ...(has_captcha ? [`frame-src${captcha}`] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function notBuilt(): string {
  const content = html`<div class="plain"><h1>Muster</h1>
<p class="lead">The platform runs, but its hub is not built yet.</p>
<p>In a checkout, <code>npm start</code> builds it in the first seconds, and so does <code>npm run build -w hub</code>. This page then shows it. What
the hub does, the <a href="${REFERENCE_PATH}">API</a> and the command <code>muster</code> do too.</p></div>`
  return framed({ title: 'Muster', version: '', content })
}
