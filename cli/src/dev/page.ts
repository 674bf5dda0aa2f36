// The page of the game as `muster dev` serves it: files as they are on the disk, without a cache. Calls of players are passed to
// the platform with the development token, which the page never sees.

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import { extname, join, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** Calls of a player's page. */
const PASSED_PATHS = /^\/(matchmaker|v1|identity|parties|kv)(\/|$)/
const LOOPBACK = '127.0.0.1'
/** Headers that belong to one connection. */
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'host', 'origin', 'cookie']
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.gif': 'image/gif',
  '.ico': 'image/x-icon',
  '.wasm': 'application/wasm',
  '.mp3': 'audio/mpeg',
  '.ogg': 'audio/ogg',
  '.woff2': 'font/woff2',
}

export type PageOptions = {
  /** The folder of the site. Null: the game has no page, and only calls are passed on. */
  folder: string | null
  platform_url: string
  token: string
  game_id: string
  namespace_id: string
  /** 0: a free one. */
  port: number
}

export type Page = { url: string; close(): Promise<void> }

export async function servePage(options: PageOptions): Promise<Page> {
  let url = ''
  const server = createServer((request, response) => {
    respond(options, url, request, response).catch((error: Error) => {
      // The browser has gone, or the platform ended in the middle of a response.
      if (response.headersSent) response.destroy()
      else fail(response, 502, error.message)
    })
  })
  server.listen(options.port, LOOPBACK)
  await once(server, 'listening')
  url = `http://localhost:${(server.address() as { port: number }).port}`
  return { url, close: () => closeServer(server) }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

async function respond(
  options: PageOptions,
  url: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  // Another page of this browser must not play with the token of the developer.
  if (!isOwnHost(request.headers.host, url)) return fail(response, 421, 'Unknown host.')
  if (request.headers.origin !== undefined && request.headers.origin !== url)
    return fail(response, 403, 'Unknown origin.')
  if (PASSED_PATHS.test(pathname)) return passOn(options, request, response)
  if (pathname === '/.well-known/muster.json') {
    const { game_id, namespace_id } = options
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify({ matchmaker_url: url, game_id, namespace_id }))
    return
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') return fail(response, 405, 'Only GET and HEAD.')
  await sendFile(options.folder, pathname, request.method, response)
}

function isOwnHost(host: string | undefined, url: string): boolean {
  const { port } = new URL(url)
  return host === `localhost:${port}` || host === `${LOOPBACK}:${port}`
}

async function passOn(
  { platform_url, token }: PageOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = new URL(incoming.url ?? '/', platform_url)
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).filter(([name]) => !CONNECTION_HEADERS.includes(name)),
  )
  // A player with an identity has a token of its own.
  headers.authorization ??= `Bearer ${token}`
  const outgoing = (target.protocol === 'https:' ? requestHttps : requestHttp)(target, {
    method: incoming.method,
    headers,
  })
  // A player who closes the page gives up the wait.
  response.once('close', () => outgoing.destroy())
  const arrived = once(outgoing, 'response') as Promise<[IncomingMessage]>
  await Promise.all([
    pipeline(incoming, outgoing),
    arrived.then(([answer]) => {
      const passed = Object.entries(answer.headers).filter(([name]) => !CONNECTION_HEADERS.includes(name))
      response.writeHead(answer.statusCode ?? 502, Object.fromEntries(passed))
      return pipeline(answer, response)
    }),
  ])
}

async function sendFile(
  folder: string | null,
  pathname: string,
  method: string,
  response: ServerResponse,
): Promise<void> {
  const file = folder === null ? null : await findFile(folder, pathname)
  if (file === null) return fail(response, 404, 'There is no such file.')
  const type = TYPES[extname(file.path).toLowerCase()] ?? 'application/octet-stream'
  response.writeHead(200, { 'content-type': type, 'content-length': file.bytes, 'cache-control': 'no-store' })
  if (method === 'HEAD') {
    response.end()
    return
  }
  await pipeline(createReadStream(file.path), response)
}

/** Null: it does not exist, or is outside of the folder. */
async function findFile(folder: string, pathname: string): Promise<{ path: string; bytes: number } | null> {
  try {
    const root = await realpath(folder)
    const path = decodeURIComponent(pathname)
    const file = await realpath(join(root, path.endsWith('/') ? `${path}index.html` : path))
    if (!file.startsWith(root + sep)) return null
    const stats = await stat(file)
    return stats.isFile() ? { path: file, bytes: stats.size } : null
  } catch {
    // No such file, a malformed path, or a NUL in it.
    return null
  }
}

function fail(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
  response.end(`${text}\n`)
}
