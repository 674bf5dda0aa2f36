// The page of the game as `muster dev` serves it: files as they are on the disk, without a cache, with the types, forms and
// headers of the platform. Calls of players are passed to the platform with the development token, which the page never sees.

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import { join, sep } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import type { findLobby, NotFound, ResponseOf, VersionConfig } from '@musterhost/contract'
import {
  chooseForm,
  contentTypeOf,
  createSiteHeaders,
  type Forms,
  fileOfPathname,
  folderLocation,
  formsOfPath,
  HEAD_BYTES,
  headEncoding,
  indexOfFolder,
  isEncodedByHead,
  type SiteEncoding,
  type Substitute,
  substituteOf,
} from '@musterhost/contract/site'

/** Calls of a player's page. */
const PASSED_PATHS = /^\/(matchmaker|v1|identity|parties|kv)(\/|$)/
const NOT_ASCII = /[^\0-\x7f]/
/** Calls whose response has the token of a player with a seat. */
const SEAT_PATHS = /^\/(matchmaker|v1)\/lobbies\/(find|join|create)$/
const LOOPBACK = '127.0.0.1'
/** Headers that belong to one connection. */
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'host', 'origin', 'cookie']

export type PageOptions = {
  /** The folder of the site. Null: the game has no page, and only calls are passed on. */
  folder: string | null
  /** The member `cdn` of the version config. */
  cdn: VersionConfig['cdn']
  platform_url: string
  token: string
  /** Called with each player token that the platform returns, before the client has it. */
  onSeat: (player_token: string, address: string | undefined) => void
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
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return fail(response, 405, 'Only GET and HEAD.')
  }
  await sendFound(options, pathname, request, response)
}

function isOwnHost(host: string | undefined, url: string): boolean {
  const { port } = new URL(url)
  return host === `localhost:${port}` || host === `${LOOPBACK}:${port}`
}

async function passOn(
  { platform_url, token, onSeat }: PageOptions,
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
      if (answer.statusCode !== 200 || !SEAT_PATHS.test(target.pathname)) return pipeline(answer, response)
      return passSeat(answer, response, (player_token) => onSeat(player_token, incoming.socket.remoteAddress))
    }),
  ])
}

async function passSeat(
  answer: IncomingMessage,
  response: ServerResponse,
  onSeat: (player_token: string) => void,
): Promise<void> {
  const bytes = await buffer(answer)
  const seat = JSON.parse(bytes.toString()) as ResponseOf<typeof findLobby>
  onSeat(seat.player.token)
  response.end(bytes)
}

type PageFile = { on_disk: string; content_length: number; content_type: string; content_encoding: SiteEncoding | null }
/** Status 301: the path is a folder without its slash, and `path` the folder's page. */
type Found = Forms<PageFile> & { path: string; status: Substitute['status'] | 301 }

/** As the edge does: the file at the path in the form that the browser accepts, with the headers of the routes. */
async function sendFound(
  { folder, cdn }: PageOptions,
  pathname: string,
  { method, headers, url = '/' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const found = folder === null ? null : await findFile(folder, pathname, cdn?.not_found ?? null)
  if (found === null) return fail(response, 404, 'There is no such file.')
  const own = createSiteHeaders(cdn?.routes ?? [])(found.path)
  // A developer sees each change at once, whatever a route says.
  const always = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff', ...own.others]
  if (found.status === 301) {
    response.writeHead(301, ['location', folderLocation(found.path, url), 'content-length', '0', ...always])
    response.end()
    return
  }
  const accept_encoding = headers['accept-encoding']?.toString()
  const chosen = chooseForm(found, { accept_encoding, wants_part: false, isPackable: () => false })
  if (chosen === null) return fail(response, 406, 'The request accepts none of the encodings of the file.')
  const { file, unpacked, varies } = chosen
  response.writeHead(found.status, [
    ...['content-type', own.content_type ?? file.content_type],
    ...(unpacked === null ? ['content-length', String(file.content_length)] : []),
    ...(file.content_encoding === null || unpacked !== null ? [] : ['content-encoding', file.content_encoding]),
    ...(varies ? ['vary', 'Accept-Encoding'] : []),
    ...always,
  ])
  if (method === 'HEAD') {
    response.end()
    return
  }
  const stored = createReadStream(file.on_disk)
  if (unpacked === null) await pipeline(stored, response)
  else await pipeline(stored, unpacked === 'br' ? createBrotliDecompress() : createGunzip(), response)
}

/** Null: the site has neither the file nor one for unknown paths. */
async function findFile(folder: string, pathname: string, not_found: NotFound | null): Promise<Found | null> {
  let path: string
  try {
    path = fileOfPathname(pathname)
  } catch {
    return null
  }
  const forms = await formsOf(folder, path)
  if (forms !== null) return { ...forms, path, status: 200 }
  const index = indexOfFolder(path)
  const page = index === null ? null : await formsOf(folder, index)
  if (index !== null && page !== null) return { ...page, path: index, status: 301 }
  const substitute = substituteOf(path, not_found)
  const other = await formsOf(folder, substitute.path)
  return other === null ? null : { ...other, ...substitute }
}

/** Null: the site has the file in no form. */
async function formsOf(folder: string, path: string): Promise<Forms<PageFile> | null> {
  const [file, br, gzip] = await Promise.all(
    ['', '.br', '.gz'].map((ending) => readPageFile(folder, `${path}${ending}`)),
  )
  return formsOfPath(file ?? null, br ?? null, gzip ?? null)
}

/** Null: it does not exist, or is outside of the folder. */
async function readPageFile(folder: string, path: string): Promise<PageFile | null> {
  try {
    const root = await realpath(folder)
    const on_disk = await realpath(join(root, await nameOnDisk(root, path)))
    if (!on_disk.startsWith(root + sep)) return null
    const stats = await stat(on_disk)
    if (!stats.isFile()) return null
    const type = contentTypeOf(path, null)
    const content_encoding = isEncodedByHead(path) ? headEncoding(await readHead(on_disk)) : type.content_encoding
    return { on_disk, content_length: stats.size, content_type: type.content_type, content_encoding }
  } catch {
    // No such file, or a NUL in its name.
    return null
  }
}

/**
 * Names of sites are in Unicode normal form C; those of files may be in another form. `path`: in form C. Rejects when a folder of
 * the path cannot be read.
 */
async function nameOnDisk(root: string, path: string): Promise<string> {
  if (!NOT_ASCII.test(path)) return path
  let found = ''
  for (const name of path.split('/')) {
    const entries = NOT_ASCII.test(name) ? await readdir(join(root, found)) : [name]
    const entry = entries.includes(name) ? name : entries.find((one) => one.normalize('NFC') === name)
    found = join(found, entry ?? name)
  }
  return found
}

async function readHead(on_disk: string): Promise<Buffer> {
  return buffer(createReadStream(on_disk, { end: HEAD_BYTES - 1 }))
}

function fail(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
  response.end(`${text}\n`)
}
