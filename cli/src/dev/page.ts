// The page of the game as `muster dev` serves it: files as they are on the disk, without a cache, with the types, forms and
// headers of the platform. Calls of players are passed to the platform with the development token, which the page never sees.

import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import {
  type ClientRequest,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { join, sep } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import {
  ApiError,
  errorBody,
  type findLobby,
  type NotFound,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
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
import type { DevLobby } from './lobby.ts'

/** Calls of a player's page. */
const PASSED_PATHS = /^\/(matchmaker|v1|identity|parties|kv)(\/|$)/
const NOT_ASCII = /[\x80-\uffff]/
/** Calls whose response has the token of a player with a seat. */
const SEAT_PATHS: readonly string[] = ['/lobbies/find', '/lobbies/join', '/lobbies/create']
/** Calls about the lobby of the server: `$1` is the path without the service. */
const LOBBY_PATHS = /^\/(?:matchmaker|v1)(\/(?:lobbies|players)\/.*)$/
/** Bytes of such a call: more than the platform accepts. */
const LOBBY_CALL_BYTES_MAX = 256 * 1024
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
  onSeat: (player: { token: string; role?: 'spectator' }, address: string | undefined) => void
  /** Sees calls about the lobby before and after the platform. */
  lobby: Pick<DevLobby, 'before' | 'after'>
  game_id: string
  namespace_id: string
  /** 0: a free one. */
  port: number
}

/** `lobby_url`: the same address for the server of the lobby, which may know no name `localhost`. */
export type ServedPage = { url: string; lobby_url: string; close(): Promise<void> }

export async function servePage(options: PageOptions): Promise<ServedPage> {
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
  const { port } = server.address() as { port: number }
  url = `http://localhost:${port}`
  return { url, lobby_url: `http://${LOOPBACK}:${port}`, close: () => closeServer(server) }
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

async function passOn(options: PageOptions, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams: query } = new URL(incoming.url ?? '/', options.platform_url)
  const [, path] = LOBBY_PATHS.exec(pathname) ?? []
  const { authorization } = incoming.headers
  // A player with an identity has a token of its own, and gets a seat in a lobby of the platform.
  const is_server = authorization === `Bearer ${options.token}`
  if (path === undefined || (authorization !== undefined && !is_server)) {
    const { answer, sent } = askPlatform(options, incoming, response)
    await Promise.all([pipeline(incoming, sent), answer.then((arrived) => sendOn(arrived, response))])
    return
  }
  const body = await readBody(incoming)
  if (body === null) return fail(response, 413, `A call about a lobby has at most ${LOBBY_CALL_BYTES_MAX} bytes.`)
  const call = { method: incoming.method ?? 'GET', path, query, text: body.toString(), is_server }
  try {
    await options.lobby.before(call)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const refusal = errorBody(error, { ray_id: '', main_url: options.platform_url })
    response.writeHead(error.status, { 'content-type': 'application/json; charset=utf-8' })
    response.end(JSON.stringify(refusal))
    return
  }
  const { answer, sent } = askPlatform(options, incoming, response)
  sent.end(body)
  const arrived = await answer
  if (arrived.statusCode !== 200) return sendOn(arrived, response)
  const received = await text(arrived)
  if (SEAT_PATHS.includes(path)) {
    const seat = JSON.parse(received) as ResponseOf<typeof findLobby>
    options.onSeat(seat.player, incoming.socket.remoteAddress)
  }
  const changed = Buffer.from(options.lobby.after(call, received) ?? received)
  response.writeHead(200, { ...passedHeaders(arrived.headers), 'content-length': changed.length })
  response.end(changed)
}

/** Sends the head of a call to the platform. `sent`: takes its body. */
function askPlatform(
  { platform_url, token }: PageOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
): { sent: ClientRequest; answer: Promise<IncomingMessage> } {
  const target = new URL(incoming.url ?? '/', platform_url)
  const headers = passedHeaders(incoming.headers)
  headers.authorization ??= `Bearer ${token}`
  // What the command reads is not compressed.
  headers['accept-encoding'] = 'identity'
  const sent = (target.protocol === 'https:' ? requestHttps : requestHttp)(target, { method: incoming.method, headers })
  // A player who closes the page gives up the wait.
  response.once('close', () => sent.destroy())
  const answer = once(sent, 'response').then(([arrived]) => arrived as IncomingMessage)
  return { sent, answer }
}

async function sendOn(arrived: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(arrived.statusCode ?? 502, passedHeaders(arrived.headers))
  await pipeline(arrived, response)
}

function passedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !CONNECTION_HEADERS.includes(name)))
}

/** Null: it is too long. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > LOBBY_CALL_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
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
