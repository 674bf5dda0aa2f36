// Signed requests to one bucket of an S3 service. A request whose failure may pass is repeated a few times. Then it fails with
// ObjectsAway, which a caller over HTTP receives as API_NOT_AVAILABLE. A failure that does not pass, such as a wrong key, is an
// S3Error. Addresses have the bucket in their path, which every S3 service understands. No request has a checksum trailer: services
// that are older than 2024 refuse them.
import { createHash } from 'node:crypto'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { SecureContext } from 'node:tls'
import { ApiError } from '@musterhost/contract'
import { AwsV4Signer } from 'aws4fetch'
import { readBounded } from '../../flow/read-bounded.ts'
import { type CertificateFault, certificateFault } from '../../outbound/certificate-fault.ts'
import { textOf } from './xml.ts'

/** A bucket, and who may use it. `prefix`: without slashes at its ends, or empty. */
export type S3Bucket = {
  /** An origin, without a slash at the end. */
  endpoint: string
  region: string
  bucket: string
  prefix: string
  access_key_id: string
  secret_access_key: string
}

export type S3Options = {
  /** The wall clock: signatures carry the time. */
  now: () => number
  /** Certificate authorities that are trusted. Default: Node's. */
  trust?: () => SecureContext
}

export type S3Request = {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Below the prefix. Null: the bucket itself. */
  key: string | null
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: S3Body
  /** The service moves bytes before it responds. */
  is_slow?: true
}

/** `open`: called for each attempt. `sha256`: the service refuses other bytes. */
export type S3Body = { content_length: number; sha256: string; open: () => Readable | Buffer }

/** `text`: the body of a response that is not streamed. */
export type S3Response = { status: number; headers: IncomingMessage['headers']; text: string }

/** Attempts of one request. */
const ATTEMPTS_MAX = 4
const PAUSE_MS_FIRST = 100
/** The pause before the last attempt is the longest. */
const PAUSE_GROWTH = 4
/** A connection over which nothing moves is given up. */
const SILENCE_MS_MAX = 10_000
/** The same while the service copies or joins. */
const SLOW_SILENCE_MS_MAX = 300_000
/** After this time a request is not repeated. */
const REPEATED_MS_MAX = 15_000
/** Connections at once. Further requests wait for one. */
const CONNECTIONS_MAX = 64
/** Bytes of a response that is held in memory: the longest is a list of 1,000 keys. */
const TEXT_BYTES_MAX = 4 * 1024 * 1024
const EMPTY_SHA256 = createHash('sha256').digest('hex')
const RETRY_AFTER_S = 5

/** The service cannot be reached, or fails. Nothing is known about a request that changes something. */
export class ObjectsAway extends ApiError {
  constructor(cause: unknown) {
    const message = 'The store of files does not respond. Try again in a moment.'
    super('API_NOT_AVAILABLE', { reason: 'objects_away' }, { message, retry_after_s: RETRY_AFTER_S })
    this.cause = cause
  }
}

/** The service has not proven who it is, so nothing was sent. `setting`: where the remedy is. */
export class S3CertificateError extends Error {
  readonly setting: 'MUSTER_FETCH_AUTHORITIES' | 'MUSTER_S3_ENDPOINT'

  constructor({ kind, what }: CertificateFault, host: string, cause: unknown) {
    const remedy = {
      other_name: 'Write a name of the certificate into MUSTER_S3_ENDPOINT.',
      outdated: 'Renew it, or correct the clock of this machine.',
      untrusted: 'Add the certificate of its authority to the PEM file of MUSTER_FETCH_AUTHORITIES.',
      no_tls: 'Begin MUSTER_S3_ENDPOINT with http:// only in a network that you trust.',
    }[kind]
    super(`${kind === 'no_tls' ? 'The' : 'The certificate of the'} S3 service at ${host} ${what}. ${remedy}`, { cause })
    this.name = 'S3CertificateError'
    this.setting = kind === 'untrusted' ? 'MUSTER_FETCH_AUTHORITIES' : 'MUSTER_S3_ENDPOINT'
  }
}

/** `code`: that of S3, such as `NoSuchKey`. `date_ms`: the service's clock. */
export class S3Error extends Error {
  readonly status: number
  readonly code: string
  readonly date_ms: number | null
  constructor(status: number, code: string, message: string, date_ms: number | null) {
    super(`The S3 service refuses the request: ${code} (status ${status})${message === '' ? '' : `: ${message}`}`)
    this.name = 'S3Error'
    this.status = status
    this.code = code
    this.date_ms = date_ms
  }
}

export class S3Client {
  readonly #bucket: S3Bucket
  readonly #options: S3Options
  readonly #is_tls: boolean
  readonly #endpoint: URL
  readonly #agent: HttpAgent
  readonly #signing_keys = new Map<string, ArrayBuffer>()

  constructor(bucket: S3Bucket, options: S3Options) {
    this.#bucket = bucket
    this.#options = options
    this.#is_tls = bucket.endpoint.startsWith('https:')
    this.#endpoint = new URL(bucket.endpoint)
    const settings = { keepAlive: true, maxSockets: CONNECTIONS_MAX, timeout: SILENCE_MS_MAX }
    this.#agent = this.#is_tls ? new HttpsAgent(settings) : new HttpAgent(settings)
  }

  /** The name of the bucket's key for messages: `s3://bucket/prefix`. */
  get name(): string {
    const { bucket, prefix } = this.#bucket
    return `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`
  }

  get prefix(): string {
    return this.#bucket.prefix
  }

  /** `/bucket/prefix/key`, as the header of a copy names its source. */
  pathOf(key: string | null): string {
    const { bucket, prefix } = this.#bucket
    const parts = key === null ? [bucket] : [bucket, ...(prefix === '' ? [] : [prefix]), key]
    return `/${parts.join('/')}`
  }

  /** Rejects with an S3Error for each status of 400 or above, and with ObjectsAway. */
  async send(request: S3Request): Promise<S3Response> {
    return this.#withRetries(async () => {
      const response = await this.#request(request)
      const text = await textOfResponse(response)
      requireSuccess(response, text)
      return { status: response.statusCode ?? 0, headers: response.headers, text }
    })
  }

  /** The response whose body the caller reads or destroys. Rejects as `send` does. */
  async stream(request: S3Request): Promise<IncomingMessage> {
    return this.#withRetries(async () => {
      const response = await this.#request(request)
      if ((response.statusCode ?? 0) >= 400) requireSuccess(response, await textOfResponse(response))
      return response
    })
  }

  /** An address for one request without credentials. `headers`: the client must send exactly these. */
  async presign(
    request: Pick<S3Request, 'method' | 'headers'> & { key: string },
    { endpoint, lifetime_s }: { endpoint: string; lifetime_s: number },
  ): Promise<string> {
    const url = new URL(endpoint + this.pathOf(request.key))
    url.searchParams.set('X-Amz-Expires', String(lifetime_s))
    const { url: signed } = await this.#signer({
      method: request.method,
      url: url.href,
      headers: { ...request.headers },
      signQuery: true,
      allHeaders: true,
    }).sign()
    return signed.href
  }

  close(): void {
    this.#agent.destroy()
  }

  #signer(request: {
    method: string
    url: string
    headers: Record<string, string>
    signQuery?: boolean
    allHeaders?: boolean
  }): AwsV4Signer {
    const { access_key_id, secret_access_key, region } = this.#bucket
    return new AwsV4Signer({
      ...request,
      accessKeyId: access_key_id,
      secretAccessKey: secret_access_key,
      service: 's3',
      region,
      cache: this.#signing_keys,
      datetime: new Date(this.#options.now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    })
  }

  async #withRetries<T>(attempt: () => Promise<T>): Promise<T> {
    const started_ms = performance.now()
    for (let count = 1; ; count++) {
      try {
        return await attempt()
      } catch (error) {
        const fault = this.#is_tls ? certificateFault(error, this.#endpoint.hostname) : null
        if (fault !== null) throw new ObjectsAway(new S3CertificateError(fault, this.#endpoint.host, error))
        if (!mayPass(error)) throw error
        if (count === ATTEMPTS_MAX || performance.now() - started_ms > REPEATED_MS_MAX) throw new ObjectsAway(error)
        await delay(PAUSE_MS_FIRST * PAUSE_GROWTH ** (count - 1))
      }
    }
  }

  async #request({ method, key, query = {}, headers = {}, body, is_slow }: S3Request): Promise<IncomingMessage> {
    // The time limit of signing keys is a day.
    if (this.#signing_keys.size > 1) this.#signing_keys.clear()
    const target = new URL(this.#bucket.endpoint + this.pathOf(key))
    for (const [name, value] of Object.entries(query)) target.searchParams.set(name, value)
    const signed = await this.#signer({
      method,
      url: target.href,
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_SHA256 },
    }).sign()
    const all_headers: Record<string, string> = Object.fromEntries(signed.headers)
    if (method === 'PUT' || method === 'POST') all_headers['content-length'] = String(body?.content_length ?? 0)
    const tls = this.#is_tls && this.#options.trust !== undefined ? { secureContext: this.#options.trust() } : {}
    const request = (this.#is_tls ? requestHttps : requestHttp)(signed.url, {
      method,
      headers: all_headers,
      agent: this.#agent,
      ...tls,
    })
    request.setTimeout(is_slow ? SLOW_SILENCE_MS_MAX : SILENCE_MS_MAX, () => request.destroy(new Silence()))
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve)
      request.on('error', reject)
    })
    response.catch(() => undefined)
    await sendBody(request, response, body)
    return response
  }
}

/** A service that refuses a request responds before it has read the body, and may close the connection. */
async function sendBody(
  request: ReturnType<typeof requestHttp>,
  response: Promise<IncomingMessage>,
  body: S3Body | undefined,
): Promise<void> {
  const content = body?.open()
  if (content === undefined || content instanceof Buffer) {
    request.end(content)
    return
  }
  try {
    await pipeline(content, request)
  } catch (error) {
    const refusal = await Promise.race([response.catch(() => null), delay(PAUSE_MS_FIRST, null, { ref: false })])
    if (refusal === null) throw error
  }
}

async function textOfResponse(response: IncomingMessage): Promise<string> {
  const tooLong = () => new Error('The response of the S3 service is too long.')
  return (await readBounded(response, TEXT_BYTES_MAX, tooLong)).toString()
}

/** Some requests have a body with an error after a status of 200, because they took long. */
function requireSuccess({ statusCode = 0, headers }: IncomingMessage, text: string): void {
  const is_error = statusCode >= 400 || /^\s*(?:<\?xml[^>]*>\s*)?<Error>/.test(text)
  if (!is_error) return
  const status = statusCode >= 400 ? statusCode : 500
  const date_ms = Date.parse(headers.date ?? '')
  const code = textOf(text, 'Code') ?? codeOfStatus(status)
  throw new S3Error(status, code, textOf(text, 'Message') ?? '', Number.isNaN(date_ms) ? null : date_ms)
}

/** A HEAD has no body that names the error. */
function codeOfStatus(status: number): string {
  return { 403: 'AccessDenied', 404: 'NotFound', 412: 'PreconditionFailed' }[status] ?? 'Error'
}

class Silence extends Error {
  readonly code = 'ETIMEDOUT'
}

const CONNECTION_ERRORS = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN'],
  ...['EAI_AGAIN', 'ENOTFOUND', 'ERR_STREAM_PREMATURE_CLOSE'],
])

/** Errors of a connection, and refusals that name a moment. */
export function mayPass(error: unknown): boolean {
  if (error instanceof S3Error) {
    const { status, code } = error
    return (status >= 500 && status !== 501) || status === 429 || code === 'RequestTimeout' || code === 'SlowDown'
  }
  if (error instanceof AggregateError) return error.errors.every(mayPass)
  const { code = '' } = error as NodeJS.ErrnoException
  return CONNECTION_ERRORS.has(code) || code.startsWith('HPE_')
}
