// A strict S3 service with one bucket in memory, for machines without OpenStack Swift. It verifies each signature (version 4)
// and the hash of each body with code of its own, and refuses every operation and parameter that it does not know. What
// S3 itself promises is proven with Swift.
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { buffer } from 'node:stream/consumers'

export type S3Credentials = { bucket: string; region: string; access_key_id: string; secret_access_key: string }

type StoredFile = { bytes: Buffer; etag: string; modified: string; headers: Record<string, string> }
type PartialUpload = { key: string; headers: Record<string, string>; begun: string; parts: Map<number, StoredFile> }
type S3Call = { request: IncomingMessage; response: ServerResponse; query: ReadonlyMap<string, string>; body: Buffer }

/** Parameters of a signature in the query. */
const SIGNATURE_PARAMETERS = /^X-Amz-(Algorithm|Credential|Date|Expires|Signature|SignedHeaders|Content-Sha256)$/i
/** Headers that are stored with a file and returned with it. */
const STORED_HEADERS = /^(content-type|x-amz-meta-.*)$/
const ALGORITHM = 'AWS4-HMAC-SHA256'
const UNSIGNED = 'UNSIGNED-PAYLOAD'

class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message = '') {
    super(message)
    this.status = status
    this.code = code
  }
}

export class SmallS3 {
  readonly #credentials: S3Credentials
  readonly #files = new Map<string, StoredFile>()
  readonly #uploads = new Map<string, PartialUpload>()
  #server: Server | null = null
  /** The rule for pages: those of this origin may send files. Null: the bucket has no rule. */
  allowed_origin: string | null = null

  constructor(credentials: S3Credentials) {
    this.#credentials = credentials
  }

  async listen(port: number): Promise<void> {
    const server = createServer((request, response) => void this.#respond(request, response))
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    this.#server = server
  }

  /** What was stored stays. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (server === null) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await buffer(request)
      if (request.method === 'OPTIONS') return this.#preflight(request, response)
      const [path = '', search = ''] = (request.url ?? '').split('?')
      const pairs = pairsOf(search)
      this.#verify(request, { path, pairs, body })
      const query = new Map(pairs.filter(([name]) => !SIGNATURE_PARAMETERS.test(name)))
      const [, bucket, ...parts] = path.split('/').map(decodeURIComponent)
      if (bucket !== this.#credentials.bucket) throw new Refusal(404, 'NoSuchBucket')
      const call = { request, response, query, body }
      if (parts.length === 0) this.#ofBucket(call)
      else this.#ofKey(parts.join('/'), call)
    } catch (error) {
      if (request.destroyed && !request.complete) return
      const { status, code, message } = error instanceof Refusal ? error : new Refusal(500, 'InternalError', `${error}`)
      const text = `<Error><Code>${code}</Code><Message>${encoded(message)}</Message></Error>`
      response.writeHead(status, { 'content-type': 'application/xml' }).end(request.method === 'HEAD' ? '' : text)
    }
  }

  /** As AWS: a preflight is not signed. */
  #preflight({ headers }: IncomingMessage, response: ServerResponse): void {
    const { origin, 'access-control-request-method': method } = headers
    if (origin !== this.allowed_origin || method !== 'PUT')
      throw new Refusal(403, 'AccessForbidden', 'CORSResponse: This CORS request is not allowed.')
    response.writeHead(200, {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'PUT, GET',
      'access-control-allow-headers': 'Content-Type',
    })
    response.end()
  }

  #verify(
    { method = '', headers }: IncomingMessage,
    { path, pairs, body }: { path: string; pairs: readonly (readonly [string, string])[]; body: Buffer },
  ): void {
    const signature = readSignature(headers, new Map(pairs))
    const { region, access_key_id, secret_access_key } = this.#credentials
    const [key_id, day = '', signed_region, service, kind] = signature.credential.split('/')
    if (key_id !== access_key_id) throw new Refusal(403, 'InvalidAccessKeyId')
    if (signed_region !== region) throw new Refusal(400, 'AuthorizationHeaderMalformed', `expecting '${region}'`)
    if (service !== 's3' || kind !== 'aws4_request') throw new Refusal(403, 'SignatureDoesNotMatch')
    const hash = String(headers['x-amz-content-sha256'] ?? UNSIGNED)
    if (!signature.is_in_query && hash !== sha256Of(body)) throw new Refusal(400, 'XAmzContentSHA256Mismatch')
    const canonical = [
      method,
      path.split('/').map(decodeURIComponent).map(quoted).join('/'),
      canonicalQuery(pairs),
      ...signature.signed_headers.map((name) => `${name}:${headerOf(headers, name)}`),
      '',
      signature.signed_headers.join(';'),
      hash,
    ].join('\n')
    const scope = [day, region, 's3', 'aws4_request']
    const text = [ALGORITHM, signature.date, scope.join('/'), sha256Of(canonical)].join('\n')
    const key = scope.reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${secret_access_key}`)
    const [expected, given] = [hmac(key, text), Buffer.from(signature.value, 'hex')]
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
      throw new Refusal(403, 'SignatureDoesNotMatch')
    }
  }

  #ofBucket({ request, response, query }: S3Call): void {
    if (request.method === 'PUT') return void response.end()
    if (request.method !== 'GET') throw new Refusal(501, 'NotImplemented')
    const prefix = query.get('prefix') ?? ''
    if (query.has('uploads')) {
      requireOnly(query, ['uploads', 'prefix', 'max-uploads'])
      const uploads = [...this.#uploads].filter(([, { key }]) => key.startsWith(prefix))
      const items = uploads.map(
        ([id, { key, begun }]) =>
          `<Upload><Key>${encoded(key)}</Key><UploadId>${id}</UploadId><Initiated>${begun}</Initiated></Upload>`,
      )
      sendXml(response, `<ListMultipartUploadsResult>${items.join('')}</ListMultipartUploadsResult>`)
      return
    }
    requireOnly(query, ['list-type', 'prefix', 'max-keys', 'start-after'])
    const after = query.get('start-after') ?? ''
    const keys = [...this.#files.keys()].filter((key) => key.startsWith(prefix) && key > after).sort()
    const listed = keys.slice(0, Number(query.get('max-keys') ?? 1000))
    const items = listed.map((key) => `<Contents><Key>${encoded(key)}</Key></Contents>`).join('')
    const is_truncated = listed.length < keys.length
    sendXml(response, `<ListBucketResult><IsTruncated>${is_truncated}</IsTruncated>${items}</ListBucketResult>`)
  }

  #ofKey(key: string, call: S3Call): void {
    const { request, response, query } = call
    requireOnly(query, ['uploads', 'uploadId', 'partNumber', 'x-id'])
    const upload_id = query.get('uploadId')
    const { method } = request
    if (method === 'GET' || method === 'HEAD') this.#send(this.#find(key), call)
    else if (method === 'PUT' && upload_id === undefined) this.#put(key, call)
    else if (method === 'PUT') this.#putPart(upload_id!, call)
    else if (method === 'POST' && upload_id === undefined) this.#begin(key, call)
    else if (method === 'POST') this.#join(upload_id!, call)
    else if (method === 'DELETE') {
      if (upload_id === undefined) this.#files.delete(key)
      else if (!this.#uploads.delete(upload_id)) throw new Refusal(404, 'NoSuchUpload')
      response.writeHead(204).end()
    } else throw new Refusal(501, 'NotImplemented')
  }

  #find(key: string): StoredFile {
    const file = this.#files.get(key)
    if (file === undefined) throw new Refusal(404, 'NoSuchKey')
    return file
  }

  #send({ bytes, etag, modified, headers }: StoredFile, { request, response }: S3Call): void {
    const range = rangeOf(request.headers.range, bytes.length)
    const sent = range === null ? bytes : bytes.subarray(range.start, range.end + 1)
    const of_range = range === null ? {} : { 'content-range': `bytes ${range.start}-${range.end}/${bytes.length}` }
    const about = { etag, 'last-modified': modified, 'content-length': sent.length, 'accept-ranges': 'bytes' }
    response.writeHead(range === null ? 200 : 206, { ...headers, ...of_range, ...about })
    response.end(request.method === 'HEAD' ? undefined : sent)
  }

  #put(key: string, { request, response, body }: S3Call): void {
    const source = this.#sourceOf(request.headers)
    const own = storedHeaders(request.headers)
    const keeps = source !== null && request.headers['x-amz-metadata-directive'] !== 'REPLACE'
    const file = fileOf(source?.bytes ?? body, keeps ? source.headers : own)
    this.#files.set(key, file)
    if (source === null) response.writeHead(200, { etag: file.etag }).end()
    else sendXml(response, `<CopyObjectResult><ETag>${encoded(file.etag)}</ETag></CopyObjectResult>`)
  }

  /** The file that a copy names, or the range of it. */
  #sourceOf(headers: IncomingHttpHeaders): StoredFile | null {
    const path = headers['x-amz-copy-source']
    if (path === undefined) return null
    const [, bucket, ...parts] = decodeURIComponent(String(path)).split('/')
    if (bucket !== this.#credentials.bucket) throw new Refusal(404, 'NoSuchBucket')
    const file = this.#find(parts.join('/'))
    const range = rangeOf(headers['x-amz-copy-source-range'] as string | undefined, file.bytes.length)
    return range === null ? file : { ...file, bytes: file.bytes.subarray(range.start, range.end + 1) }
  }

  #begin(key: string, { request, response, query }: S3Call): void {
    if (!query.has('uploads')) throw new Refusal(501, 'NotImplemented')
    const id = randomUUID()
    const begun = new Date().toISOString()
    this.#uploads.set(id, { key, headers: storedHeaders(request.headers), begun, parts: new Map() })
    const ids = `<Key>${encoded(key)}</Key><UploadId>${id}</UploadId>`
    sendXml(response, `<InitiateMultipartUploadResult>${ids}</InitiateMultipartUploadResult>`)
  }

  #uploadOf(id: string): PartialUpload {
    const upload = this.#uploads.get(id)
    if (upload === undefined) throw new Refusal(404, 'NoSuchUpload')
    return upload
  }

  #putPart(id: string, { request, response, query, body }: S3Call): void {
    const source = this.#sourceOf(request.headers)
    const part = fileOf(source?.bytes ?? body, {})
    this.#uploadOf(id).parts.set(Number(query.get('partNumber')), part)
    if (source === null) response.writeHead(200, { etag: part.etag }).end()
    else sendXml(response, `<CopyPartResult><ETag>${encoded(part.etag)}</ETag></CopyPartResult>`)
  }

  #join(id: string, { response, body }: S3Call): void {
    const { key, headers, parts } = this.#uploadOf(id)
    const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>(.*?)<\/ETag>/g)]
    const chosen = named.map(([, number, etag = '']) => {
      const part = parts.get(Number(number))
      if (part === undefined || part.etag !== etag.replace(/&(quot|#34);/g, '"')) throw new Refusal(400, 'InvalidPart')
      return part.bytes
    })
    if (chosen.length === 0) throw new Refusal(400, 'MalformedXML')
    this.#uploads.delete(id)
    const file = fileOf(Buffer.concat(chosen), headers)
    this.#files.set(key, file)
    sendXml(
      response,
      `<CompleteMultipartUploadResult><ETag>${encoded(file.etag)}</ETag></CompleteMultipartUploadResult>`,
    )
  }
}

type Signature = { credential: string; date: string; signed_headers: string[]; value: string; is_in_query: boolean }

/** The signature in the header Authorization, or in a presigned address. */
function readSignature(headers: IncomingHttpHeaders, query: ReadonlyMap<string, string>): Signature {
  const found = new RegExp(`^${ALGORITHM} Credential=(\\S+), ?SignedHeaders=(\\S+), ?Signature=(\\w+)$`).exec(
    headers.authorization ?? '',
  )
  const is_in_query = found === null
  const [credential, names, value] = is_in_query
    ? ['X-Amz-Credential', 'X-Amz-SignedHeaders', 'X-Amz-Signature'].map((name) => query.get(name))
    : found.slice(1)
  const date = is_in_query ? query.get('X-Amz-Date') : headerOf(headers, 'x-amz-date')
  if (!credential || !names || !value || !date) throw new Refusal(403, 'AccessDenied', 'The request is not signed.')
  const signed_headers = names.split(';')
  if (!signed_headers.includes('host')) throw new Refusal(403, 'AccessDenied', 'The host is not signed.')
  return { credential, date, signed_headers, value, is_in_query }
}

function headerOf(headers: IncomingHttpHeaders, name: string): string {
  return String(headers[name] ?? '')
    .trim()
    .replace(/ +/g, ' ')
}

function pairsOf(search: string): (readonly [string, string])[] {
  if (search === '') return []
  return search.split('&').map((pair) => {
    const [name = '', value = ''] = pair.split('=').map((text) => decodeURIComponent(text.replaceAll('+', ' ')))
    return [name, value] as const
  })
}

function canonicalQuery(pairs: readonly (readonly [string, string])[]): string {
  return pairs
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${quoted(name)}=${quoted(value)}`)
    .sort()
    .join('&')
}

/** As RFC 3986 has it: encodeURIComponent leaves five characters that a signature does not. */
function quoted(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function requireOnly(query: ReadonlyMap<string, string>, names: readonly string[]): void {
  const unknown = [...query.keys()].find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Refusal(501, 'NotImplemented', unknown)
}

function rangeOf(text: string | undefined, length: number): { start: number; end: number } | null {
  const match = /^bytes=(\d+)-(\d*)$/.exec(text ?? '')
  if (match === null) return null
  const start = Number(match[1])
  if (start >= length) throw new Refusal(416, 'InvalidRange')
  return { start, end: Math.min(match[2] === '' ? length : Number(match[2]), length - 1) }
}

function storedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => STORED_HEADERS.test(name))
      .map(([name, value]) => [name, String(value)]),
  )
}

function fileOf(bytes: Buffer, headers: Record<string, string>): StoredFile {
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
  return { bytes, etag, modified: new Date().toUTCString(), headers }
}

function sendXml(response: ServerResponse, text: string): void {
  response.setHeader('content-type', 'application/xml')
  response.end(`<?xml version="1.0" encoding="UTF-8"?>${text}`)
}

function encoded(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

function sha256Of(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
