// The registry of the platform: a read-only part of the OCI distribution specification, from which container engines pull
// the images of lobbies. It serves manifests and blobs by digest, and no tags, lists or uploads.
//
// A credential is for one node and one image: `user` is the node, `password` an HMAC of both names. The key is made at the
// start of the runner and never stored. So an engine reads the images of its own lobbies only, and a credential ends with
// the runner that gave it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { blobsOf, MANIFEST_TYPE, type ServedImages } from './served-images.ts'

/** Three connections for each of some dozens of engines. */
const CONNECTIONS_MAX = 512
/** A path with the name of an image and a digest. */
const PATH = /^\/v2\/(?<name>[a-z0-9-]{1,128})\/(?<kind>manifests|blobs)\/sha256:(?<hex>[0-9a-f]{64})$/
const RANGE = /^bytes=(?<first>\d{1,15})-$/
const REALM = 'Basic realm="muster"'

export type Credential = { username: string; password: string }
/** `tls`: PEM; null: plain HTTP. */
export type ServerOptions = { host: string; port: number; tls: { cert: string; key: string } | null }

export class ImageServer {
  readonly #images: ServedImages
  readonly #key = randomBytes(32)
  readonly #server: Server

  /** Throws when the port cannot be used. */
  static async open(images: ServedImages, { host, port, tls }: ServerOptions): Promise<ImageServer> {
    const opened = new ImageServer(images, tls)
    await new Promise<void>((resolve, reject) => {
      opened.#server.once('error', reject)
      opened.#server.listen({ host, port }, resolve)
    })
    return opened
  }

  private constructor(images: ServedImages, tls: ServerOptions['tls']) {
    this.#images = images
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      this.#respond(request, response).catch(() => response.destroy())
    }
    this.#server = tls === null ? createServer(onRequest) : createTlsServer(tls, onRequest)
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Lets this node read this image. */
  credentialFor(node_id: string, name: string): Credential {
    return { username: node_id, password: this.#passwordOf(node_id, name) }
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #passwordOf(node_id: string, name: string): string {
    return createHmac('sha256', this.#key).update(`${node_id}\n${name}`).digest('base64url')
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('Docker-Distribution-Api-Version', 'registry/2.0')
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD') return sendError(response, 405, 'UNSUPPORTED')
    const given = credentialOf(request)
    // Engines ask this path which credentials the registry wants.
    if (url === '/v2/' && given !== null) return void response.end('{}')
    const { name, kind, hex } = PATH.exec(url)?.groups ?? {}
    if (given === null || (name !== undefined && !this.#admits(given, name))) {
      response.setHeader('WWW-Authenticate', REALM)
      return sendError(response, 401, 'UNAUTHORIZED')
    }
    const image = name === undefined ? null : this.#images.find(name)
    if (image === null || hex === undefined) return sendError(response, 404, 'NAME_UNKNOWN')
    const is_manifest = kind === 'manifests'
    if (is_manifest ? hex !== image.manifest : !blobsOf(image).includes(hex)) {
      return sendError(response, 404, is_manifest ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN')
    }
    await this.#send(request, response, hex, is_manifest ? MANIFEST_TYPE : 'application/octet-stream')
  }

  /** Engines continue a layer where a broken connection ended it. */
  async #send(
    { method, headers }: IncomingMessage,
    response: ServerResponse,
    hex: string,
    type: string,
  ): Promise<void> {
    const blob = await this.#images.blob(hex)
    if (blob === null) return sendError(response, 404, 'BLOB_UNKNOWN')
    const first = Number(RANGE.exec(headers.range ?? '')?.groups?.first ?? 0)
    if (first >= blob.size) {
      response.setHeader('Content-Range', `bytes */${blob.size}`)
      return sendError(response, 416, 'RANGE_INVALID')
    }
    if (first > 0) response.setHeader('Content-Range', `bytes ${first}-${blob.size - 1}/${blob.size}`)
    response.writeHead(first > 0 ? 206 : 200, {
      'Accept-Ranges': 'bytes',
      'Content-Length': blob.size - first,
      'Content-Type': type,
      'Docker-Content-Digest': `sha256:${hex}`,
    })
    if (method === 'HEAD') return void response.end()
    await pipeline(createReadStream(this.#images.pathOf(hex), { start: first }), response)
  }

  #admits({ username, password }: Credential, name: string): boolean {
    const wanted = Buffer.from(this.#passwordOf(username, name))
    const given = Buffer.from(password)
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  }
}

function credentialOf({ headers }: IncomingMessage): Credential | null {
  const encoded = /^basic (?<text>[a-z0-9+/=]{1,512})$/i.exec(headers.authorization ?? '')?.groups?.text
  const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  return colon === -1 ? null : { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

/** In the form of the specification. */
function sendError(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ errors: [{ code, message: code.toLowerCase().replaceAll('_', ' ') }] }))
}
